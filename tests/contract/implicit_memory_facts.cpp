// Memory that no allocation call explains: kernels take it from the device when they are launched.
#include <cstdio>
#include <string>

#include "tests/contract/driver_test.hpp"
#include "tests/kernels_in_ptx.hpp"

namespace cuwarden::contract {
namespace {

// Kernels in PTX: `small` does nothing. A thread of `deep` has an array of 16 KiB, one of `deeper`
// an array of 64 KiB. `heap` calls the device-side malloc.
// The words in the comment declare nothing: the parser of PTX must skip them.
const std::string kHead = kernels::head + R"(
.extern .func (.param .b64 result) malloc (.param .b64 size);
.extern .func free (.param .b64 pointer);
.visible .entry small()
{
  ret;  // .local .align 16 .b8 scratch[64];
}
)";
constexpr char kHeap[] = R"(
.visible .entry heap(.param .u64 bytes)
{
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [bytes];
  {
    .param .b64 size;
    st.param.b64 [size], %d1;
    .param .b64 result;
    call.uni (result), malloc, (size);
    ld.param.b64 %d2, [result];
  }
  {
    .param .b64 pointer;
    st.param.b64 [pointer], %d2;
    call.uni free, (pointer);
  }
  ret;
}
)";
const std::string code =
    kHead + kernels::text_of("deep", 16384) + kernels::text_of("deeper", 65536) + kHeap;

// A kernel's own code takes device memory when the kernel is first needed: at most so many MiB.
constexpr double kCodeMib = 4;

class ImplicitMemoryFacts : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    ASSERT_EQ(cuModuleLoadData(&module, code.c_str()), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&out, 4096), CUDA_SUCCESS);
    ASSERT_EQ(launch_plain("small"), CUDA_SUCCESS);
    int processors = 0, threads = 0;
    ASSERT_EQ(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device),
              CUDA_SUCCESS);
    ASSERT_EQ(
        cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device),
        CUDA_SUCCESS);
    resident_threads = static_cast<std::size_t>(processors) * static_cast<std::size_t>(threads);
  }
  CUfunction kernel(const char* name) {
    CUfunction found = nullptr;
    EXPECT_EQ(cuModuleGetFunction(&found, module, name), CUDA_SUCCESS) << name;
    return found;
  }
  CUresult launch(const char* name) {
    unsigned at = 64;
    void* arguments[] = {&out, &at};
    const CUresult launched =
        cuLaunchKernel(kernel(name), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr);
    return launched != CUDA_SUCCESS ? launched : cuCtxSynchronize();
  }
  CUresult launch_plain(const char* name) {
    const CUresult launched =
        cuLaunchKernel(kernel(name), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
    return launched != CUDA_SUCCESS ? launched : cuCtxSynchronize();
  }
  CUresult launch_with_heap() {
    std::size_t bytes = 1024;
    void* arguments[] = {&bytes};
    const CUresult launched =
        cuLaunchKernel(kernel("heap"), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr);
    return launched != CUDA_SUCCESS ? launched : cuCtxSynchronize();
  }
  double taken_mib(std::size_t before) {
    return (static_cast<double>(before) - static_cast<double>(free_bytes())) / kMiB;
  }

  CUmodule module = nullptr;
  CUdeviceptr out = 0;
  std::size_t resident_threads = 0;
};

TEST_F(ImplicitMemoryFacts, a_kernels_local_memory_is_what_its_code_declares) {
  int bytes = 0;
  ASSERT_EQ(cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, kernel("deep")),
            CUDA_SUCCESS);
  EXPECT_NEAR(bytes, 16384, 64);
  ASSERT_EQ(cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, kernel("small")),
            CUDA_SUCCESS);
  EXPECT_EQ(bytes, 0);
}

TEST_F(ImplicitMemoryFacts, a_kernel_that_the_code_lacks_is_not_found) {
  CUfunction found = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&found, module, "shallow"), CUDA_ERROR_NOT_FOUND);
}

// 16 KiB for each thread take 3,960 MiB on 132 multiprocessors of 2,048 threads: one KiB of each
// thread is there from the start.
TEST_F(ImplicitMemoryFacts, local_memory_is_taken_for_all_resident_threads_and_kept) {
  const double need_mib = static_cast<double>(resident_threads * 15 * kKiB) / kMiB;
  if (static_cast<double>(free_bytes()) / kMiB < need_mib + 64)
    GTEST_SKIP() << "needs " << need_mib << " MiB";
  const std::size_t before = free_bytes();
  ASSERT_EQ(launch("deep"), CUDA_SUCCESS);
  EXPECT_NEAR(taken_mib(before), need_mib, need_mib / 20);
  const std::size_t after = free_bytes();
  ASSERT_EQ(launch("deep"), CUDA_SUCCESS);
  ASSERT_EQ(launch_plain("small"), CUDA_SUCCESS);
  EXPECT_NEAR(taken_mib(after), 0, kCodeMib);
}

TEST_F(ImplicitMemoryFacts, a_launch_without_room_for_its_local_memory_fails_until_there_is_room) {
  CUdeviceptr ballast = 0;
  ASSERT_EQ(cuMemAlloc(&ballast, (free_bytes() - 256 * kMiB) / (2 * kMiB) * (2 * kMiB)),
            CUDA_SUCCESS);
  const std::size_t before = free_bytes();
  EXPECT_EQ(launch("deeper"), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(launch("deep"), CUDA_ERROR_OUT_OF_MEMORY);
  // The refused launch may give back memory that other kernels had.
  EXPECT_LT(taken_mib(before), kCodeMib);
  EXPECT_EQ(launch_plain("small"), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(ballast), CUDA_SUCCESS);
  if (free_bytes() > resident_threads * 15 * kKiB) {
    EXPECT_EQ(launch("deep"), CUDA_SUCCESS);
  }
}

TEST_F(ImplicitMemoryFacts,
       a_captured_kernel_gets_its_local_memory_when_its_graph_is_instantiated) {
  const double need_mib = static_cast<double>(resident_threads * 15 * kKiB) / kMiB;
  if (static_cast<double>(free_bytes()) / kMiB < need_mib + 64)
    GTEST_SKIP() << "needs " << need_mib << " MiB";
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  const CUfunction deep = kernel("deep");
  int local = 0;
  ASSERT_EQ(cuFuncGetAttribute(&local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, deep), CUDA_SUCCESS);
  std::size_t before = free_bytes();
  unsigned at = 64;
  void* arguments[] = {&out, &at};
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  ASSERT_EQ(cuLaunchKernel(deep, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  EXPECT_NEAR(taken_mib(before), 0, kCodeMib);
  before = free_bytes();
  ASSERT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
  EXPECT_NEAR(taken_mib(before), need_mib, need_mib / 20);
  before = free_bytes();
  ASSERT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_NEAR(taken_mib(before), 0, kCodeMib);
  cuGraphExecDestroy(exec);
  cuGraphDestroy(graph);
}

TEST_F(ImplicitMemoryFacts, the_memory_of_streams_is_kept_for_later_streams_when_they_end) {
  constexpr int count = 200;
  std::vector<CUstream> streams(count);
  const auto make_all = [&] {
    for (CUstream& stream : streams)
      ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  };
  const auto destroy_all = [&] {
    for (const CUstream stream : streams) ASSERT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
  };
  // Earlier tests may have left memory of streams.
  make_all();
  destroy_all();
  const std::size_t before = free_bytes();
  make_all();
  EXPECT_NEAR(taken_mib(before), 0, 4);
  destroy_all();
  EXPECT_NEAR(taken_mib(before), 0, 4);
  // Twice as many streams take about half a MiB each for the rest.
  std::vector<CUstream> more(count);
  make_all();
  for (CUstream& stream : more)
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  EXPECT_NEAR(taken_mib(before), count * 0.545, count * 0.1);
  for (const CUstream stream : more) ASSERT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
  destroy_all();
  EXPECT_NEAR(taken_mib(before), count * 0.545, count * 0.1);
}

// Executable graphs of kGraphNodes nodes that fill a word of memory each.
class ExecutableGraphFacts : public ImplicitMemoryFacts {
 protected:
  static constexpr int kGraphs = 100;
  static constexpr int kGraphNodes = 200;

  // Makes the graph of which all executables are made. `chained`: true if each node waits for the
  // one before, false if the graph has no edges.
  void make_graph(bool chained) {
    ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    CUDA_MEMSET_NODE_PARAMS fill{};
    fill.elementSize = 4;
    fill.width = fill.height = 1;
    CUgraphNode node = nullptr;
    for (int i = 0; i < kGraphNodes; ++i) {
      fill.dst = out + static_cast<CUdeviceptr>(4 * i);
      const CUgraphNode before = node;
      const std::size_t edges = chained && i > 0 ? 1 : 0;
      ASSERT_EQ(cuGraphAddMemsetNode(&node, graph, &before, edges, &fill, context), CUDA_SUCCESS);
    }
  }
  // Makes all executables and launches each. Returns the MiB of device memory that they took.
  double make_all(const char* what) {
    const std::size_t before = free_bytes();
    for (CUgraphExec& exec : execs) EXPECT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
    const double instantiated = taken_mib(before);
    for (const CUgraphExec exec : execs) EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    const double taken = taken_mib(before);
    std::printf("%s: %.1f MiB, of which %.1f when instantiated; %.2f KiB a node\n", what, taken,
                instantiated, taken * 1024 / (kGraphs * kGraphNodes));
    return taken;
  }
  void destroy_all() {
    for (const CUgraphExec exec : execs) EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }
  // Makes all executables, destroys them, and does both again. Checks that a node took between
  // `least` and `most` KiB, and that the driver keeps the memory for later executables.
  void check_rounds(double least, double most) {
    const double node_kib = kGraphs * kGraphNodes / 1024.0;
    if (static_cast<double>(free_bytes()) / kMiB < most * node_kib)
      GTEST_SKIP() << "needs " << most * node_kib << " MiB";
    const std::size_t before = free_bytes();
    const double first = make_all("first round");
    EXPECT_GE(first, least * node_kib);
    EXPECT_LE(first, most * node_kib);
    destroy_all();
    const double left = taken_mib(before);
    std::printf("left of it: %.1f MiB\n", left);
    EXPECT_LE(left, first + kCodeMib);
    EXPECT_LE(make_all("second round"), first * 0.05);
    destroy_all();
    std::printf("left after both: %.1f MiB\n", taken_mib(before));
    EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  }

  CUgraph graph = nullptr;
  std::vector<CUgraphExec> execs = std::vector<CUgraphExec>(kGraphs);
};

TEST_F(ExecutableGraphFacts, chained_nodes_take_a_few_kib_each_which_later_graphs_get) {
  make_graph(true);
  check_rounds(0.25, 32);
}

// On an H200, each branch takes memory of its own.
TEST_F(ExecutableGraphFacts, nodes_without_edges_take_memory_that_later_graphs_get) {
  make_graph(false);
  check_rounds(0.25, 256);
}

#if CUDA_VERSION >= 12040
TEST_F(ImplicitMemoryFacts, the_memory_of_a_green_context_is_neither_given_back_nor_used_again) {
  CUdevResource all{}, part{}, rest{};
  ASSERT_EQ(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
  const auto make = [&] {
    unsigned count = 1;
    CUdevResourceDesc description = nullptr;
    CUgreenCtx green = nullptr;
    EXPECT_EQ(cuDevSmResourceSplitByCount(&part, &count, &all, &rest, 0, 8), CUDA_SUCCESS);
    EXPECT_EQ(cuDevResourceGenerateDesc(&description, &part, 1), CUDA_SUCCESS);
    EXPECT_EQ(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_SUCCESS);
    return green;
  };
  const CUgreenCtx first = make();  // may make the primary context
  std::size_t before = free_bytes();
  for (int i = 0; i < 5; ++i) {
    const CUgreenCtx green = make();
    const double taken = taken_mib(before);
    EXPECT_GE(taken, 4);
    EXPECT_LE(taken, 6);
    before = free_bytes();
    EXPECT_EQ(cuGreenCtxDestroy(green), CUDA_SUCCESS);
    EXPECT_EQ(free_bytes(), before);
  }
  EXPECT_EQ(cuGreenCtxDestroy(first), CUDA_SUCCESS);
}
#endif

TEST_F(ImplicitMemoryFacts, the_heap_of_device_side_malloc_takes_its_default_size_once) {
  const std::size_t before = free_bytes();
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(launch_with_heap(), CUDA_SUCCESS);
  }
  EXPECT_NEAR(taken_mib(before), 10, 6);
}

TEST_F(ImplicitMemoryFacts, the_first_launch_that_needs_a_heap_makes_it_as_large_as_its_limit) {
  const std::size_t before = free_bytes();
  ASSERT_EQ(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 256 * kMiB), CUDA_SUCCESS);
  ASSERT_EQ(launch_plain("small"), CUDA_SUCCESS);
  EXPECT_NEAR(taken_mib(before), 0, kCodeMib);
  ASSERT_EQ(launch_with_heap(), CUDA_SUCCESS);
  EXPECT_NEAR(taken_mib(before), 258, kCodeMib);
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 300 * kMiB), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 64 * kMiB), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(ImplicitMemoryFacts,
       a_launch_whose_heap_does_not_fit_fails_for_lack_of_resources_not_memory) {
  CUdeviceptr ballast = 0;
  ASSERT_EQ(cuMemAlloc(&ballast, (free_bytes() - 256 * kMiB) / (2 * kMiB) * (2 * kMiB)),
            CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1024 * kMiB), CUDA_SUCCESS);
  const std::size_t before = free_bytes();
  EXPECT_EQ(launch_with_heap(), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  EXPECT_NEAR(taken_mib(before), 0, kCodeMib);
  EXPECT_EQ(launch_plain("small"), CUDA_SUCCESS);
}

TEST_F(ImplicitMemoryFacts,
       code_with_device_side_malloc_takes_extra_memory_once_when_it_is_loaded) {
  CUmodule plain = nullptr, again = nullptr;
  CUcontext other = nullptr;
  CUctxCreateParams parameters{};
  ASSERT_EQ(cuCtxCreate(&other, &parameters, 0, device), CUDA_SUCCESS);
  std::size_t before = free_bytes();
  ASSERT_EQ(cuModuleLoadData(&plain, (kHead + kernels::text_of("shallow", 64)).c_str()),
            CUDA_SUCCESS);
  EXPECT_NEAR(taken_mib(before), 0, kCodeMib);
  ASSERT_EQ(cuModuleLoadData(&again, code.c_str()), CUDA_SUCCESS);
  EXPECT_NEAR(taken_mib(before), 138, 2 * kCodeMib);
  ASSERT_EQ(cuCtxDestroy(other), CUDA_SUCCESS);
}

TEST_F(ImplicitMemoryFacts, a_smaller_stack_gives_back_what_a_larger_one_took) {
  const double need_mib = static_cast<double>(resident_threads * kKiB) / kMiB;
  const std::size_t before = free_bytes();
  ASSERT_EQ(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048), CUDA_SUCCESS);
  EXPECT_NEAR(taken_mib(before), need_mib, need_mib / 20 + kCodeMib);
  ASSERT_EQ(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024), CUDA_SUCCESS);
  EXPECT_NEAR(taken_mib(before), 0, kCodeMib);
}

TEST_F(ImplicitMemoryFacts,
       a_stack_limit_that_does_not_fit_gives_local_memory_back_until_the_next_launch) {
  CUdeviceptr ballast = 0;
  ASSERT_EQ(cuMemAlloc(&ballast, (free_bytes() - 256 * kMiB) / (2 * kMiB) * (2 * kMiB)),
            CUDA_SUCCESS);
  const std::size_t before = free_bytes();
  ASSERT_EQ(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 65536), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_LT(taken_mib(before), -64);
  const std::size_t after = free_bytes();
  ASSERT_EQ(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 65536), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_NEAR(taken_mib(after), 0, kCodeMib) << "there is nothing more to give";
  ASSERT_EQ(launch_plain("small"), CUDA_SUCCESS);
  EXPECT_GT(taken_mib(after), 64);
  EXPECT_LT(taken_mib(before), kCodeMib) << "memory for code may come back later";
}

}  // namespace
}  // namespace cuwarden::contract
