// ways WAY [PATH]: takes cuMemAlloc from the driver in one of the ways that programs do, without
// linking any CUDA library. Leaks 3 buffers of 1 MiB through the function that it found.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr std::size_t buffers = 3;
constexpr std::size_t bytes = std::size_t{1} << 20;

using Allocate = CUresult (*)(CUdeviceptr*, std::size_t);
using AllocateAsync = CUresult (*)(CUdeviceptr*, std::size_t, CUstream);
using Lookup4 = CUresult (*)(const char*, void**, int, cuuint64_t);
using Lookup5 = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
using EntryPoint = cudaError_t (*)(const char*, void**, unsigned long long,
                                   cudaDriverEntryPointQueryResult*);
using EntryPointByVersion = cudaError_t (*)(const char*, void**, unsigned int, unsigned long long,
                                            cudaDriverEntryPointQueryResult*);

[[noreturn]] void fail(const char* what) {
  std::printf("%s\n", what);
  std::exit(3);
}

template <typename Function>
Function checked(void* found, const char* what) {
  if (found == nullptr) fail(what);
  return reinterpret_cast<Function>(found);
}

void* open_driver(const char* path, int flags) {
  void* handle = dlopen(path, flags);
  if (handle == nullptr) fail("no driver");
  return handle;
}

void make_context(void* driver) {
  const auto init = checked<CUresult (*)(unsigned int)>(dlsym(driver, "cuInit"), "cuInit");
  const auto retain = checked<CUresult (*)(CUcontext*, CUdevice)>(
      dlsym(driver, "cuDevicePrimaryCtxRetain"), "cuDevicePrimaryCtxRetain");
  const auto set =
      checked<CUresult (*)(CUcontext)>(dlsym(driver, "cuCtxSetCurrent"), "cuCtxSetCurrent");
  CUcontext context = nullptr;
  if (init(0) != CUDA_SUCCESS || retain(&context, 0) != CUDA_SUCCESS ||
      set(context) != CUDA_SUCCESS)
    fail("no context");
}

void* find(void* driver, const std::string& way, bool& stream_ordered) {
  const char* const name = "cuMemAlloc_v2";
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  if (way == "dlsym" || way == "absolute_path" || way == "deepbind" || way == "dlmopen")
    return dlsym(driver, name);
  if (way == "default") return dlsym(RTLD_DEFAULT, name);
  if (way == "next") return dlsym(RTLD_NEXT, name);
  if (way == "runtime_dlsym" || way == "runtime_dlvsym") {
    void* runtime = dlopen("libcudart.so.13", RTLD_NOW);
    if (runtime == nullptr) fail("no runtime");
    return way == "runtime_dlsym" ? dlsym(runtime, "cudaMalloc")
                                  : dlvsym(runtime, "cudaMalloc", "libcudart.so.13");
  }
  if (way == "proc_address_4" || way == "proc_address_4_from_4") {
    auto lookup = checked<Lookup4>(dlsym(driver, "cuGetProcAddress"), "cuGetProcAddress");
    if (way == "proc_address_4_from_4") {
      lookup("cuGetProcAddress", &found, 11030, 0);
      lookup = checked<Lookup4>(found, "cuGetProcAddress from itself");
    }
    lookup("cuMemAlloc", &found, 11030, 0);
    return found;
  }
  if (way == "proc_address_5" || way == "proc_address_5_null_status" ||
      way == "proc_address_5_from_5" || way == "per_thread") {
    auto lookup = checked<Lookup5>(dlsym(driver, "cuGetProcAddress_v2"), "cuGetProcAddress_v2");
    if (way == "proc_address_5_from_5") {
      lookup("cuGetProcAddress", &found, 12000, 0, &status);
      lookup = checked<Lookup5>(found, "cuGetProcAddress from itself");
    }
    if (way == "per_thread") {
      stream_ordered = true;
      lookup("cuMemAllocAsync", &found, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
             &status);
    } else {
      lookup("cuMemAlloc", &found, 12000, 0,
             way == "proc_address_5_null_status" ? nullptr : &status);
    }
    return found;
  }
  if (way == "entry_point" || way == "entry_point_by_version") {
    void* runtime = dlopen("libcudart.so.13", RTLD_NOW);
    if (runtime == nullptr) fail("no runtime");
    cudaDriverEntryPointQueryResult result{};
    if (way == "entry_point") {
      checked<EntryPoint>(dlsym(runtime, "cudaGetDriverEntryPoint"), "cudaGetDriverEntryPoint")(
          "cuMemAlloc", &found, 0, &result);
    } else {
      checked<EntryPointByVersion>(dlsym(runtime, "cudaGetDriverEntryPointByVersion"),
                                   "cudaGetDriverEntryPointByVersion")("cuMemAlloc", &found, 12000,
                                                                       0, &result);
    }
    return found;
  }
  fail("unknown way");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string way = argv[1];
  const char* path = argc > 2 ? argv[2] : "libcuda.so.1";
  void* driver = nullptr;
  if (way == "dlmopen") {
    driver = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
    if (driver == nullptr) fail("no driver");
  } else {
    driver = open_driver(path, RTLD_NOW | (way == "default" || way == "next" ? RTLD_GLOBAL : 0) |
                                   (way == "deepbind" ? RTLD_DEEPBIND : 0));
  }
  make_context(driver);

  bool stream_ordered = false;
  void* found = find(driver, way, stream_ordered);
  if (found == nullptr) fail("not found");
  int line = 0;
  for (std::size_t i = 0; i < buffers; ++i) {
    CUdeviceptr buffer = 0;
    CUresult result;
    if (stream_ordered) {
      line = __LINE__ + 1;
      result = reinterpret_cast<AllocateAsync>(found)(&buffer, bytes, nullptr);
    } else {
      line = __LINE__ + 1;
      result = reinterpret_cast<Allocate>(found)(&buffer, bytes);
    }
    if (result != CUDA_SUCCESS) fail("not allocated");
  }
  std::printf(
      "{\"leaked\":[{\"api\":\"%s\",\"kind\":\"%s\",\"count\":%zu,\"bytes\":%zu,"
      "\"function\":\"main\",\"line\":%d}]}\n",
      way.starts_with("runtime") ? "cudaMalloc"
      : stream_ordered           ? "cuMemAllocAsync_ptsz"
                                 : "cuMemAlloc_v2",
      stream_ordered ? "stream_ordered" : "device", buffers, buffers * bytes, line);
}
