// loader_lock LIBRARY cold|warm alone|beside: opens and closes a library whose constructor and
// destructor, with the loader's lock held, use CUDA and wait for a thread that does so too. warm:
// this program has used CUDA before. beside: yet another thread of it uses CUDA all the while, and
// looks it up. A deadlock ends in SIGALRM.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>

#include "tests/comes_about.hpp"
#include "tests/end_to_end/programs/require.hpp"

namespace {

std::atomic<bool> begun{false}, over{false};

void use_cuda_beside() {
  using Allocate = CUresult (*)(CUdeviceptr*, std::size_t);
  CUcontext context = nullptr;
  begun = true;
  REQUIRE(cuInit(0));
  REQUIRE(cuDevicePrimaryCtxRetain(&context, 0));
  REQUIRE(cuCtxSetCurrent(context));
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  do {
    for (void* const handle : {RTLD_DEFAULT, driver}) {
      CUdeviceptr memory = 0;
      // Waits for the thread that holds the loader's lock.
      const auto allocate = reinterpret_cast<Allocate>(dlsym(handle, "cuMemAlloc_v2"));
      REQUIRE(allocate(&memory, 1000));
      REQUIRE(cuMemFree(memory));
    }
  } while (!over);
}

}  // namespace

int main(int, char** arguments) {
  alarm(20);
  if (arguments[2] == std::string("warm")) {
    void* memory = nullptr;
    REQUIRE(cudaMalloc(&memory, 1000));
    REQUIRE(cudaFree(memory));
  }
  std::thread beside;
  if (arguments[3] == std::string("beside")) {
    beside = std::thread(use_cuda_beside);
    cuwarden::wait_until("the thread has begun", [] { return begun.load(); });
  }
  void* const library = dlopen(arguments[1], RTLD_NOW);
  if (library == nullptr) return 3;
  std::puts("open");
  static int failures = 0;
  reinterpret_cast<void (*)(int*)>(dlsym(library, "count_failures"))(&failures);
  const int closed = dlclose(library);
  over = true;
  if (beside.joinable()) beside.join();
  std::printf("closed: %d, failures: %d\n", closed, failures);
  return 0;
}
