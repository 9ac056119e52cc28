// To be preloaded: a cudaMalloc that fails for lack of memory is repeated once, as by programs that
// do not know why it failed. With ASK_AGAIN=synchronise the device is synchronised before. A last
// line on stderr says how many requests were repeated, how many were then served, and how long that
// took.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace {

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

class Count {
 public:
  void add(bool served, std::chrono::nanoseconds taken) {
    const std::lock_guard lock(mutex_);
    ++asked_;
    served_ += served ? 1 : 0;
    taken_ += taken;
  }
  ~Count() {
    if (asked_ == 0) return;
    std::fprintf(stderr, "asked again: {\"asked\":%d,\"served\":%d,\"ns\":%lld}\n", asked_, served_,
                 static_cast<long long>(taken_.count()));
  }

 private:
  std::mutex mutex_;
  int asked_ = 0, served_ = 0;
  std::chrono::nanoseconds taken_{0};
};
Count count;

}  // namespace

extern "C" [[gnu::visibility("default")]] cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  static const auto real = next<decltype(cudaMalloc)>("cudaMalloc");
  static const auto synchronise = next<decltype(cudaDeviceSynchronize)>("cudaDeviceSynchronize");
  static const auto forget = next<decltype(cudaGetLastError)>("cudaGetLastError");
  const cudaError_t first = real(memory, bytes);
  if (first != cudaErrorMemoryAllocation) return first;
  const auto begun = std::chrono::steady_clock::now();
  forget();
  const char* const how = std::getenv("ASK_AGAIN");
  if (how != nullptr && std::strcmp(how, "synchronise") == 0) synchronise();
  const cudaError_t again = real(memory, bytes);
  count.add(again == cudaSuccess, std::chrono::steady_clock::now() - begun);
  return again;
}
