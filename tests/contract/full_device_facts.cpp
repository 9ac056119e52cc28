// Calls that need device memory for themselves, on a device that is full. Rescues rely on this: a
// refused call leaves nothing behind, and the same call succeeds once there is room.
#include <functional>
#include <vector>

#include "tests/contract/full_device.hpp"

namespace cuwarden::contract {
namespace {

constexpr CUresult good = CUDA_SUCCESS, no_memory = CUDA_ERROR_OUT_OF_MEMORY;
// Number of texture or surface objects that no device has room for once it is full.
constexpr int most_views = 1'000'000;

class FullDeviceFacts : public FullDeviceTest {
 protected:
  // Makes the call until it is refused, `most` times at most, and once more when there is room.
  void check(const std::function<CUresult()>& call, std::size_t room, int most = 1,
             bool gives_back = false) {
    fill_but_for(room);
    CUcontext before = nullptr;
    ASSERT_EQ(cuCtxGetCurrent(&before), good);
    int served = 0;
    CUresult answer = good;
    while (served < most && (answer = call()) == good) ++served;
    ASSERT_EQ(answer, no_memory) << served << " were served";
    EXPECT_EQ(cuCtxSynchronize(), good);
    const std::size_t free = free_bytes();
    for (int i = 0; i < 20; ++i) EXPECT_EQ(call(), no_memory);
    EXPECT_EQ(cuCtxSynchronize(), good);
    EXPECT_EQ(free_bytes(), free);
    CUcontext after = nullptr;
    ASSERT_EQ(cuCtxGetCurrent(&after), good);
    EXPECT_EQ(after, before);
    EXPECT_TRUE(gives_back || free < 16 * kMiB) << free;
    make_room();
    EXPECT_EQ(call(), good);
    EXPECT_EQ(launch(plain), good);
    EXPECT_EQ(cuCtxSynchronize(), good);
  }
  // Returns the bytes of local memory that `bytes` for each thread take on the whole device.
  std::size_t local_memory(std::size_t bytes) const {
    int processors = 0, threads = 0;
    EXPECT_EQ(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device),
              good);
    EXPECT_EQ(
        cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device),
        good);
    return bytes * static_cast<std::size_t>(processors * threads);
  }
  void load_large_library() {
    ASSERT_EQ(cuLibraryLoadData(&library, kernels::large_code.c_str(), nullptr, nullptr, 0, nullptr,
                                nullptr, 0),
              good);
    ASSERT_EQ(cuLibraryGetKernel(&in_library, library, "plain"), good);
  }
  void instantiate_graph_with_memory() {
    ASSERT_EQ(cuGraphCreate(&graph, 0), good);
    ASSERT_EQ(kernels::add_memory(graph, device, 64 * kMiB), good);
    ASSERT_EQ(cuGraphInstantiate(&exec, graph, 0), good);
  }

  CUlibrary library = nullptr;
  CUkernel in_library = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
};

TEST_F(FullDeviceFacts, a_stream) {
  check(
      [] {
        CUstream stream = nullptr;
        return cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
      },
      256 * kMiB, 100);
}

TEST_F(FullDeviceFacts, a_context) {
  check(
      [this] {
        CUcontext made = nullptr;
        CUctxCreateParams parameters{};
        const CUresult result = cuCtxCreate(&made, &parameters, 0, device);
        if (result == good) cuCtxDestroy(made);
        return result;
      },
      kGiB);
}

// The device's first context may be the primary one of another library in the process.
TEST_F(FullDeviceFacts, a_primary_context) {
  check(
      [this] {
        CUcontext made = nullptr;
        const CUresult result = cuDevicePrimaryCtxRetain(&made, device);
        unsigned flags = 0;
        int active = 0;
        EXPECT_EQ(cuDevicePrimaryCtxGetState(device, &flags, &active), good);
        EXPECT_EQ(active != 0, result == good);
        if (result == good) cuDevicePrimaryCtxRelease(device);
        return result;
      },
      kGiB);
}

TEST_F(FullDeviceFacts, a_module_with_variables) {
  check(
      [] {
        CUmodule module = nullptr;
        return cuModuleLoadData(&module, kernels::large_code.c_str());
      },
      256 * kMiB);
}

TEST_F(FullDeviceFacts, the_module_of_a_library) {
  load_large_library();
  check(
      [this] {
        CUmodule module = nullptr;
        return cuLibraryGetModule(&module, library);
      },
      256 * kMiB);
}

TEST_F(FullDeviceFacts, the_function_of_a_librarys_kernel) {
  load_large_library();
  check(
      [this] {
        CUfunction function = nullptr;
        return cuKernelGetFunction(&function, in_library);
      },
      256 * kMiB);
}

TEST_F(FullDeviceFacts, a_variable_of_a_library) {
  load_large_library();
  check(
      [this] {
        CUdeviceptr variable = 0;
        std::size_t size = 0;
        return cuLibraryGetGlobal(&variable, &size, library, "big");
      },
      256 * kMiB);
}

TEST_F(FullDeviceFacts, the_first_launch_of_a_librarys_kernel) {
  load_large_library();
  check([this] { return launch(reinterpret_cast<CUfunction>(in_library)); }, 256 * kMiB);
}

// 16 KiB for each thread that the device can hold. A refused launch gives local memory back.
TEST_F(FullDeviceFacts, a_launch_with_local_memory) {
  const std::size_t needed = local_memory(16384);
  CUmodule module = nullptr;
  CUfunction deep = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, kernels::deep_code.c_str()), good);
  ASSERT_EQ(cuModuleGetFunction(&deep, module, "deep"), good);
  if (free_bytes() < needed + needed / 4) GTEST_SKIP() << "needs " << needed << " bytes";
  check([&] { return launch(deep); }, needed + needed / 8, 1, true);
}

// A refused limit stays as it was, but gives local memory back as a refused launch does.
TEST_F(FullDeviceFacts, the_limit_of_the_stack) {
  constexpr std::size_t wanted = 16384;
  std::size_t before = 0;
  ASSERT_EQ(cuCtxGetLimit(&before, CU_LIMIT_STACK_SIZE), good);
  ASSERT_LT(before, wanted);
  const std::size_t needed = local_memory(wanted);
  if (free_bytes() < needed + needed / 4) GTEST_SKIP() << "needs " << needed << " bytes";
  const auto set = [&] {
    const CUresult answer = cuCtxSetLimit(CU_LIMIT_STACK_SIZE, wanted);
    std::size_t now = 0;
    EXPECT_EQ(cuCtxGetLimit(&now, CU_LIMIT_STACK_SIZE), good);
    EXPECT_EQ(now, answer == good ? wanted : before);
    return answer;
  };
  check(set, needed + needed / 8, 1, true);
}

// The driver has room for 57,343 objects before it needs memory of the device for more.
TEST_F(FullDeviceFacts, a_texture_object) {
  CUDA_RESOURCE_DESC of_memory{};
  of_memory.resType = CU_RESOURCE_TYPE_LINEAR;
  of_memory.res.linear.devPtr = out;
  of_memory.res.linear.format = CU_AD_FORMAT_FLOAT;
  of_memory.res.linear.numChannels = 1;
  of_memory.res.linear.sizeInBytes = 4096;
  const CUDA_TEXTURE_DESC reading{};
  check(
      [&] {
        CUtexObject texture = 0;
        return cuTexObjectCreate(&texture, &of_memory, &reading, nullptr);
      },
      256 * kMiB, most_views);
}

TEST_F(FullDeviceFacts, a_surface_object) {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.Width = shape.Height = 64;
  shape.Format = CU_AD_FORMAT_FLOAT;
  shape.NumChannels = 1;
  shape.Flags = CUDA_ARRAY3D_SURFACE_LDST;
  CUDA_RESOURCE_DESC of_array{};
  of_array.resType = CU_RESOURCE_TYPE_ARRAY;
  ASSERT_EQ(cuArray3DCreate(&of_array.res.array.hArray, &shape), good);
  check(
      [&] {
        CUsurfObject surface = 0;
        return cuSurfObjectCreate(&surface, &of_array);
      },
      256 * kMiB, most_views);
}

// A refused launch gives the context's local memory back. Until the driver can take it again,
// copies and fills on the device are refused, too; copies from and to the host are not.
TEST_F(FullDeviceFacts, copies_and_fills_after_a_launch_that_was_refused) {
  CUmodule module = nullptr;
  CUfunction deep = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, kernels::deep_code.c_str()), good);
  ASSERT_EQ(cuModuleGetFunction(&deep, module, "deep"), good);
  CUdeviceptr to = 0, from = 0;
  ASSERT_EQ(cuMemAlloc(&to, 4 * kMiB), good);
  ASSERT_EQ(cuMemAlloc(&from, 4 * kMiB), good);
  std::vector<char> host(kMiB);
  fill_but_for(512 * kMiB);
  if (const CUresult answer = launch(deep); answer == good)
    GTEST_SKIP() << "512 MiB are enough for the kernel";
  const auto fill_again = [] {
    for (std::size_t size = 256 * kMiB; size >= kMiB; size /= 2) fill(size);
  };
  fill_again();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(cuMemcpyDtoD(to, from, 2 * kMiB), no_memory);
    EXPECT_EQ(cuMemcpyDtoDAsync(to, from, 512, nullptr), no_memory);
    EXPECT_EQ(cuMemsetD8(to, 1, kMiB), no_memory);
    EXPECT_EQ(launch(plain), no_memory);
    EXPECT_EQ(cuMemcpyDtoH(host.data(), from, host.size()), good);
    EXPECT_EQ(cuMemcpyHtoD(to, host.data(), host.size()), good);
    EXPECT_EQ(cuCtxSynchronize(), good);
  }
  make_room();
  EXPECT_EQ(cuMemcpyDtoD(to, from, 2 * kMiB), good);
  EXPECT_EQ(cuMemsetD8(to, 1, kMiB), good);
  EXPECT_EQ(launch(plain), good);
  EXPECT_EQ(cuCtxSynchronize(), good);
}

TEST_F(FullDeviceFacts, the_instantiation_of_a_graph) {
  ASSERT_EQ(cuGraphCreate(&graph, 0), good);
  ASSERT_EQ(kernels::add_launches(graph, plain, out, 2000), good);
  check(
      [this] {
        CUgraphExec made = nullptr;
        return cuGraphInstantiate(&made, graph, 0);
      },
      256 * kMiB);
}

TEST_F(FullDeviceFacts, the_launch_of_a_graph_with_memory) {
  instantiate_graph_with_memory();
  check([this] { return cuGraphLaunch(exec, nullptr); }, 256 * kMiB);
}

TEST_F(FullDeviceFacts, the_upload_of_a_graph_with_memory) {
  instantiate_graph_with_memory();
  check([this] { return cuGraphUpload(exec, nullptr); }, 256 * kMiB);
}

}  // namespace
}  // namespace cuwarden::contract
