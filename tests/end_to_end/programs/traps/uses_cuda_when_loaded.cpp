// A library whose constructor and destructor run with the loader's lock held. Each waits for a
// thread that calls the driver and asks it for functions, which needs no loader; by dlsym it looks
// up itself. LOADER_LOCK_FIRST says whose calls come first, the holder's or those of the thread
// waited for.
#include <cuda.h>
#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <thread>

namespace {

using Allocate = CUresult (*)(CUdeviceptr*, std::size_t);

std::atomic<int> failed_at_load{0};
int* failures = nullptr;

void check(bool good) {
  if (good) return;
  if (failures != nullptr)
    ++*failures;
  else
    ++failed_at_load;
}

void allocate_and_free(Allocate allocate) {
  CUdeviceptr memory = 0;
  check(allocate(&memory, 4096) == CUDA_SUCCESS);
  check(cuMemFree(memory) == CUDA_SUCCESS);
}

void use_linked() {
  CUcontext context = nullptr;
  check(cuInit(0) == CUDA_SUCCESS);
  check(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  check(cuCtxSetCurrent(context) == CUDA_SUCCESS);
  allocate_and_free(cuMemAlloc);
}

void use_proc_address() {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  check(cuGetProcAddress("cuMemAlloc", &found, 12000, 0, &status) == CUDA_SUCCESS);
  allocate_and_free(reinterpret_cast<Allocate>(found));
}

void use_dlsym() {
  allocate_and_free(reinterpret_cast<Allocate>(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2")));
}

void use_cuda_with_the_loader_held() {
  const char* const first = std::getenv("LOADER_LOCK_FIRST");
  const auto holder = [] {
    use_linked();
    use_proc_address();
    use_dlsym();
  };
  if (first == std::string("holder")) holder();
  std::thread([] {
    use_linked();
    use_proc_address();
  }).join();
  holder();
}

[[gnu::constructor]] void opened() { use_cuda_with_the_loader_held(); }
[[gnu::destructor]] void closed() { use_cuda_with_the_loader_held(); }

}  // namespace

extern "C" [[gnu::visibility("default")]] void count_failures(int* into) {
  *into += failed_at_load;
  failures = into;
}
