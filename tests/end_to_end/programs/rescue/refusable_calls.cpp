// refusable_calls: calls each function of the driver whose refused calls cuwarden repeats (the
// table "Served" of docs/rescue-calls.md). If a call fails, the program ends with status 3 and a
// line on stderr.
#include <cstdio>
#include <fstream>
#include <vector>

#include "tests/end_to_end/programs/create_context.hpp"
#include "tests/end_to_end/programs/require.hpp"
#include "tests/kernels_in_ptx.hpp"

namespace {

using cuwarden::kernels::plain_code;
constexpr std::size_t mib = std::size_t{1} << 20;
constexpr bool has_green_contexts = CUDA_VERSION >= 12040;

void make_contexts(CUdevice device) {
  CUcontext own = nullptr, primary = nullptr;
  REQUIRE(cuDevicePrimaryCtxRetain(&primary, device));
  REQUIRE(cuwarden::test::create_context(&own, device));
  REQUIRE(cuCtxSetCurrent(primary));
  REQUIRE(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048));
}

void make_green_context([[maybe_unused]] CUdevice device) {
#if CUDA_VERSION >= 12040
  CUdevResource all{}, part{}, rest{};
  unsigned count = 1;
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  CUstream stream = nullptr;
  REQUIRE(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
  REQUIRE(cuDevSmResourceSplitByCount(&part, &count, &all, &rest, 0, 8));
  REQUIRE(cuDevResourceGenerateDesc(&description, &part, 1));
  REQUIRE(cuGreenCtxCreate(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM));
  REQUIRE(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
#endif
}

void make_streams() {
  CUstream stream = nullptr;
  REQUIRE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  REQUIRE(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));
}

void load_code(CUdevice device) {
  const char* const file = "plain.ptx";
  std::ofstream(file) << plain_code;
  CUmodule module = nullptr;
  REQUIRE(cuModuleLoad(&module, file));
  REQUIRE(cuModuleLoadData(&module, plain_code.c_str()));
  REQUIRE(cuModuleLoadDataEx(&module, plain_code.c_str(), 0, nullptr, nullptr));
  REQUIRE(cuModuleLoadFatBinary(&module, plain_code.c_str()));
  CUlibrary library = nullptr;
  REQUIRE(cuLibraryLoadFromFile(&library, file, nullptr, nullptr, 0, nullptr, nullptr, 0));
  REQUIRE(
      cuLibraryLoadData(&library, plain_code.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel = nullptr;
  REQUIRE(cuLibraryGetKernel(&kernel, library, "plain"));
  REQUIRE(
      cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 4096, kernel, device));
  REQUIRE(cuKernelSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_L1, device));
}

void allocate_on_device(CUdevice device) {
  CUdeviceptr address = 0;
  std::size_t pitch = 0;
  REQUIRE(cuMemAlloc(&address, mib));
  REQUIRE(cuMemAllocPitch(&address, &pitch, 1000, 100, 4));
  REQUIRE(cuMemAllocManaged(&address, mib, CU_MEM_ATTACH_GLOBAL));
  REQUIRE(cuMemAllocAsync(&address, mib, nullptr));
  CUmemoryPool pool = nullptr;
  REQUIRE(cuDeviceGetDefaultMemPool(&pool, device));
  REQUIRE(cuMemAllocFromPoolAsync(&address, mib, pool, nullptr));
  CUmemAllocationProp kind{};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  CUmemGenericAllocationHandle handle = 0;
  REQUIRE(cuMemCreate(&handle, 2 * mib, &kind, 0));
}

void make_arrays() {
  CUDA_ARRAY_DESCRIPTOR flat{};
  flat.Width = flat.Height = 64;
  flat.Format = CU_AD_FORMAT_FLOAT;
  flat.NumChannels = 1;
  CUDA_ARRAY3D_DESCRIPTOR solid{};
  solid.Width = solid.Height = solid.Depth = 16;
  solid.Format = CU_AD_FORMAT_FLOAT;
  solid.NumChannels = 1;
  CUarray array = nullptr;
  CUmipmappedArray levels = nullptr;
  REQUIRE(cuArrayCreate(&array, &flat));
  REQUIRE(cuArray3DCreate(&array, &solid));
  REQUIRE(cuMipmappedArrayCreate(&levels, &solid, 2));
}

void lock_host_memory() {
  void* locked = nullptr;
  REQUIRE(cuMemAllocHost(&locked, mib));
  REQUIRE(cuMemHostAlloc(&locked, mib, 0));
  static std::vector<char> own(mib);
  REQUIRE(cuMemHostRegister(own.data(), own.size(), 0));
}

}  // namespace

int main() {
  CUdevice device = 0;
  REQUIRE(cuInit(0));
  REQUIRE(cuDeviceGet(&device, 0));
  make_contexts(device);
  make_green_context(device);
  make_streams();
  load_code(device);
  allocate_on_device(device);
  make_arrays();
  lock_host_memory();
  std::printf("{\"has_green_contexts\":%s}\n", has_green_contexts ? "true" : "false");
  return 0;
}
