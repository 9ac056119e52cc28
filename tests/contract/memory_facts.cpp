// Captures and graphs that allocate memory, and the driver's answers to odd requests.
#include <unistd.h>

#include <fstream>
#include <string>

#include "tests/contract/driver_test.hpp"
#include "tests/kernels_in_ptx.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace cuwarden::contract {
namespace {

using MemoryFacts = DriverTest;

TEST_F(MemoryFacts, an_allocation_under_a_global_capture_is_error_900) {
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, kMiB), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(MemoryFacts, a_capture_forbids_readings_of_memory_pools_except_to_a_relaxed_thread) {
  CUstream stream = nullptr;
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuDeviceGetDefaultMemPool(&pool, device), CUDA_SUCCESS);
  const auto ends_with = [&](CUstreamCaptureMode mode, auto ask, CUresult answer) {
    EXPECT_EQ(cuStreamBeginCapture(stream, mode), CUDA_SUCCESS);
    EXPECT_EQ(ask(), answer);
    CUgraph graph = nullptr;
    const CUresult result = cuStreamEndCapture(stream, &graph);
    if (graph != nullptr) cuGraphDestroy(graph);
    return result;
  };
  const auto relaxed = [](auto ask) {
    return [ask] {
      CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
      EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
      const CUresult result = ask();
      EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
      return result;
    };
  };
  const auto in_another_thread = [&](auto ask) {
    return [this, ask] {
      CUresult result = CUDA_SUCCESS;
      std::thread([&] {
        cuCtxSetCurrent(context);
        result = ask();
      }).join();
      return result;
    };
  };
  const auto info = [] {
    std::size_t free = 0, total = 0;
    return cuMemGetInfo(&free, &total);
  };
  const auto reserved = [pool] {
    cuuint64_t bytes = 0;
    return cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes);
  };
  const auto of_graphs = [this] {
    cuuint64_t bytes = 0;
    return cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes);
  };
  constexpr auto global = CU_STREAM_CAPTURE_MODE_GLOBAL, own = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  for (const CUstreamCaptureMode mode : {global, own}) {
    EXPECT_EQ(ends_with(mode, info, CUDA_SUCCESS), CUDA_SUCCESS);
    EXPECT_EQ(ends_with(mode, of_graphs, CUDA_SUCCESS), CUDA_SUCCESS);
    EXPECT_EQ(ends_with(mode, reserved, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED),
              CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(ends_with(mode, relaxed(reserved), CUDA_SUCCESS), CUDA_SUCCESS);
    EXPECT_EQ(ends_with(mode, in_another_thread(relaxed(reserved)), CUDA_SUCCESS), CUDA_SUCCESS);
  }
  EXPECT_EQ(ends_with(global, in_another_thread(reserved), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED),
            CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(ends_with(own, in_another_thread(reserved), CUDA_SUCCESS), CUDA_SUCCESS);
}

TEST_F(MemoryFacts, captured_allocations_take_memory_only_when_the_graph_is_launched) {
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  const std::size_t before = free_bytes();
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAllocAsync(&address, 64 * kMiB, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8Async(address, 7, 64 * kMiB, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFreeAsync(address, stream), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
  ASSERT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_LE(free_bytes(), before - 64 * kMiB);
  ASSERT_EQ(cuDeviceGraphMemTrim(device), CUDA_SUCCESS);
  EXPECT_GE(free_bytes() + 2 * kMiB, before);  // The graph itself takes a page.
  cuGraphExecDestroy(exec);
  cuGraphDestroy(graph);
}

// NVIDIA's sample graphMemoryNodes prints that its two arrays share an address.
TEST_F(MemoryFacts, an_allocation_node_takes_the_address_that_its_graph_has_freed_before) {
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  CUdeviceptr first = 0, beside = 0, second = 0;
  ASSERT_EQ(cuMemAllocAsync(&first, 8 * kMiB, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocAsync(&beside, 8 * kMiB, stream), CUDA_SUCCESS);
  EXPECT_NE(beside, first);
  ASSERT_EQ(cuMemFreeAsync(first, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocAsync(&second, 8 * kMiB, stream), CUDA_SUCCESS);
  EXPECT_EQ(second, first);
  ASSERT_EQ(cuMemFreeAsync(beside, stream), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
  for (int launch = 0; launch < 2; ++launch) {
    ASSERT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(second), CUDA_SUCCESS);
    EXPECT_NE(cuMemFree(second), CUDA_SUCCESS);
  }
  cuGraphExecDestroy(exec);
  cuGraphDestroy(graph);
}

TEST_F(MemoryFacts, memory_left_by_a_launch_is_freed_outside_of_the_graph_before_the_next_launch) {
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  CUgraph graph = nullptr, freeing_graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr, freeing = nullptr, repeating = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS wanted{};
  wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  wanted.bytesize = 8 * kMiB;
  ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &wanted), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphCreate(&freeing_graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphAddMemFreeNode(&node, freeing_graph, nullptr, 0, wanted.dptr), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphInstantiate(&freeing, freeing_graph, 0), CUDA_SUCCESS);

  ASSERT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(freeing, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeAsync(wanted.dptr, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(wanted.dptr), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  // Memory of the last launch is still there.
  EXPECT_NE(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeAsync(wanted.dptr, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  cuGraphExecDestroy(exec);

  ASSERT_EQ(cuGraphInstantiate(&repeating, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH),
            CUDA_SUCCESS);
  for (int launch = 0; launch < 3; ++launch)
    EXPECT_EQ(cuGraphLaunch(repeating, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(wanted.dptr), CUDA_SUCCESS);
  for (CUgraphExec each : {freeing, repeating}) cuGraphExecDestroy(each);
  for (CUgraph each : {graph, freeing_graph}) cuGraphDestroy(each);
}

TEST_F(MemoryFacts, odd_requests_get_the_answers_of_the_driver) {
  CUdeviceptr address = 0;
  void* host = nullptr;
  std::size_t pitch = 0;
  EXPECT_EQ(cuMemAlloc(&address, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAlloc(nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAlloc(&address, std::size_t{1} << 63), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc(&address, ~std::size_t{0}), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAllocHost(&host, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAllocAsync(&address, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAllocManaged(&address, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocPitch(&address, &pitch, 0, 4, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemHostRegister(&pitch, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree(0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeHost(nullptr), CUDA_SUCCESS);
}

TEST_F(MemoryFacts, frees_of_pointers_that_are_no_allocations_are_invalid) {
  CUdeviceptr address = 0;
  void* pinned = nullptr;
  ASSERT_EQ(cuMemAlloc(&address, 4096), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocHost(&pinned, 4096), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(address + 512), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree(0x1234), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree(reinterpret_cast<CUdeviceptr>(pinned)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFreeHost(reinterpret_cast<void*>(address)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFreeHost(pinned), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MemoryFacts, each_kind_of_free_accepts_the_other_kind_of_device_memory) {
  CUdeviceptr plain = 0, ordered = 0;
  ASSERT_EQ(cuMemAlloc(&plain, 4096), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocAsync(&ordered, 4096, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(ordered), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeAsync(plain, nullptr), CUDA_SUCCESS);
}

TEST_F(MemoryFacts, registering_or_unregistering_twice_is_refused) {
  alignas(4096) static char page[4096];
  ASSERT_EQ(cuMemHostRegister(page, sizeof page, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostRegister(page, sizeof page, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  ASSERT_EQ(cuMemHostUnregister(page), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostUnregister(page), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST_F(MemoryFacts, an_inner_pointer_has_the_requested_extent) {
  for (const std::size_t size : {std::size_t{100}, 3 * kMiB + 5}) {
    CUdeviceptr address = 0, base = 0;
    std::size_t extent = 0;
    ASSERT_EQ(cuMemAlloc(&address, size), CUDA_SUCCESS);
    ASSERT_EQ(cuMemGetAddressRange(&base, &extent, address + 77), CUDA_SUCCESS);
    EXPECT_EQ(base, address);
    EXPECT_EQ(extent, size);
    ASSERT_EQ(cuMemFree(address), CUDA_SUCCESS);
  }
}

TEST_F(MemoryFacts, bytes_copied_to_the_device_come_back_unchanged) {
  std::vector<unsigned char> in(3 * kMiB), out(3 * kMiB);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned char>(i * 7);
  CUdeviceptr first = 0, second = 0;
  ASSERT_EQ(cuMemAlloc(&first, in.size()), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAlloc(&second, in.size()), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyHtoD(first, in.data(), in.size()), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoD(second, first, in.size()), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8(second, 9, 10), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoH(out.data(), second, out.size()), CUDA_SUCCESS);
  EXPECT_EQ(out[9], 9);
  EXPECT_TRUE(std::equal(in.begin() + 10, in.end(), out.begin() + 10));
}

TEST_F(MemoryFacts, a_copy_past_the_end_or_into_freed_memory_is_refused) {
  char bytes[64] = {};
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAlloc(&address, 4 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyHtoD(address + 4 * kMiB - 32, bytes, sizeof bytes), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuMemFree(address), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyHtoD(address, bytes, sizeof bytes), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MemoryFacts, code_is_loaded_from_a_file_and_a_missing_file_is_an_error) {
  const TemporaryFolder folder;
  const std::string path = std::string(folder.path()) + "/module";
  std::ofstream(path) << kernels::head << ".visible .entry nothing() { ret; }\n";
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(cuModuleLoad(&module, path.c_str()), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleGetFunction(&function, module, "nothing"), CUDA_SUCCESS);
  unlink(path.c_str());
  EXPECT_EQ(cuModuleLoad(&module, path.c_str()), CUDA_ERROR_FILE_NOT_FOUND);
}

TEST_F(MemoryFacts, a_destroyed_context_returns_all_of_its_memory) {
  CUcontext second = nullptr;
  CUctxCreateParams parameters{};
  const std::size_t before = free_bytes();
  ASSERT_EQ(cuCtxCreate(&second, &parameters, 0, device), CUDA_SUCCESS);
  EXPECT_NEAR(static_cast<double>(before - free_bytes()) / kMiB, 524, 8);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAlloc(&address, 100 * kMiB), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxDestroy(second), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
}

TEST_F(MemoryFacts, a_context_does_not_fit_on_a_full_device) {
  leave_room(64 * kMiB);
  CUcontext second = nullptr;
  CUctxCreateParams parameters{};
  EXPECT_EQ(cuCtxCreate(&second, &parameters, 0, device), CUDA_ERROR_OUT_OF_MEMORY);
}

}  // namespace
}  // namespace cuwarden::contract
