// Reaches the driver as a statically linked runtime does: dlopen of libcuda.so.1, one dlsym of
// cuGetProcAddress_v2, and queries for everything else. The first query has an empty name. The
// others ask for no status, with flags 0 and 2, and for one name at two versions. Then the program
// allocates as its arguments say, and prints one line of JSON about it.
//
//     static_cudart_client COUNT BYTES FREED
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Lookup = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

Lookup lookup = nullptr;

template <typename Function>
Function query(const char* name, int version, cuuint64_t flags = 0) {
  void* found = nullptr;
  lookup(name, &found, version, flags, nullptr);
  if (found == nullptr) {
    std::fprintf(stderr, "static_cudart_client: the driver lacks %s at version %d\n", name,
                 version);
    std::exit(77);
  }
  return reinterpret_cast<Function>(found);
}

int fail(const char* what, CUresult result) {
  std::fprintf(stderr, "static_cudart_client: %s: error %d\n", what, static_cast<int>(result));
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned long count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 4;
  const std::size_t bytes = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1000;
  const unsigned long freed = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 2;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) {
    std::fprintf(stderr, "static_cudart_client: %s\n", dlerror());
    return 77;
  }
  lookup = reinterpret_cast<Lookup>(dlsym(driver, "cuGetProcAddress_v2"));
  if (lookup == nullptr) return 77;
  void* nothing = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult empty = lookup("", &nothing, 13000, 0, &status);

  const auto init = query<CUresult (*)(unsigned)>("cuInit", 2000);
  const auto retain = query<CUresult (*)(CUcontext*, CUdevice)>("cuDevicePrimaryCtxRetain", 7000);
  const auto release = query<CUresult (*)(CUdevice)>("cuDevicePrimaryCtxRelease", 7000);
  const auto set_current = query<CUresult (*)(CUcontext)>("cuCtxSetCurrent", 4000);
  const auto allocate = query<CUresult (*)(CUdeviceptr*, std::size_t)>("cuMemAlloc", 3020);
  const auto give = query<CUresult (*)(CUdeviceptr)>("cuMemFree", 3020);
  const auto allocate_async =
      query<CUresult (*)(CUdeviceptr*, std::size_t, CUstream)>("cuMemAllocAsync", 11020, 2);
  const auto free_async = query<CUresult (*)(CUdeviceptr, CUstream)>("cuMemFreeAsync", 11020, 2);
  const bool two_abis =
      query<void*>("cuIpcOpenMemHandle", 4010) != query<void*>("cuIpcOpenMemHandle", 11000);
  const bool two_streams =
      query<void*>("cuMemAllocAsync", 11020, 0) != reinterpret_cast<void*>(allocate_async);

  CUcontext context = nullptr;
  if (const CUresult result = init(0)) return fail("cuInit", result);
  if (const CUresult result = retain(&context, 0)) return fail("cuDevicePrimaryCtxRetain", result);
  if (const CUresult result = set_current(context)) return fail("cuCtxSetCurrent", result);
  std::vector<CUdeviceptr> all(count);
  for (CUdeviceptr& address : all) {
    if (const CUresult result = allocate(&address, bytes)) return fail("cuMemAlloc", result);
  }
  for (unsigned long i = 0; i < freed && i < count; ++i) {
    if (const CUresult result = give(all[i])) return fail("cuMemFree", result);
  }
  CUdeviceptr ordered = 0;
  if (const CUresult result = allocate_async(&ordered, bytes, nullptr))
    return fail("cuMemAllocAsync", result);
  if (const CUresult result = free_async(ordered, nullptr)) return fail("cuMemFreeAsync", result);
  std::printf(
      "{\"allocated\": %lu, \"bytes_each\": %zu, \"freed\": %lu, \"live\": %lu, \"async\": 1, "
      "\"empty_name_found\": %s, \"empty_name_result\": %d, \"two_abis\": %s, \"two_streams\": "
      "%s}\n",
      count, bytes, freed < count ? freed : count, count - (freed < count ? freed : count),
      nothing != nullptr ? "true" : "false", static_cast<int>(empty), two_abis ? "true" : "false",
      two_streams ? "true" : "false");
  std::fflush(stdout);
  return release(0) == CUDA_SUCCESS ? 0 : 1;
}
