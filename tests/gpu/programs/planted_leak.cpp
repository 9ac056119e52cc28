// A library with leaks of known functions, lines and sizes, for programs of any language to call.
// It finds CUDA in the process at run time, so that it belongs to no toolkit. Each function returns
// 0, or the error of the call that failed; -1 if that layer of CUDA is not in the process. The
// variable with a leak's line is set once its function has run.
#include <dlfcn.h>

#include <cstddef>

namespace {

template <typename Function>
Function find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

// Makes the primary context of device 0 current for the length of a scope, whatever context the
// caller has.
class PrimaryContext {
 public:
  explicit PrimaryContext(void* driver) : driver_(driver) {
    if (driver == nullptr) return;
    void* context = nullptr;
    result_ = find<int (*)(void**, int)>(driver, "cuDevicePrimaryCtxRetain")(&context, 0);
    if (result_ == 0) result_ = find<int (*)(void*)>(driver, "cuCtxPushCurrent_v2")(context);
  }
  ~PrimaryContext() {
    void* context = nullptr;
    if (result_ == 0) find<int (*)(void**)>(driver_, "cuCtxPopCurrent_v2")(&context);
  }
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;
  [[nodiscard]] int result() const { return result_; }

 private:
  void* driver_;
  int result_ = -1;
};

}  // namespace

extern "C" {

extern int planted_driver_leak_line, planted_runtime_leak_line, planted_pinned_leak_line;
int planted_driver_leak_line, planted_runtime_leak_line, planted_pinned_leak_line;

int planted_driver_leak(std::size_t bytes);
int planted_runtime_leak(std::size_t bytes);
int planted_pinned_leak(std::size_t bytes);

[[gnu::noinline]] int planted_driver_leak(std::size_t bytes) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  const PrimaryContext context(driver);
  if (context.result() != 0) return context.result();
  const auto allocate = find<int (*)(unsigned long long*, std::size_t)>(driver, "cuMemAlloc_v2");
  unsigned long long memory = 0;
  planted_driver_leak_line = __LINE__ + 1;
  const int result = allocate(&memory, bytes);
  return result;
}

[[gnu::noinline]] int planted_runtime_leak(std::size_t bytes) {
  void* runtime = dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD);
  if (runtime == nullptr) return -1;
  const PrimaryContext context(dlopen("libcuda.so.1", RTLD_NOW));
  if (context.result() != 0) return context.result();
  const auto allocate = find<int (*)(void**, std::size_t)>(runtime, "cudaMalloc");
  void* memory = nullptr;
  planted_runtime_leak_line = __LINE__ + 1;
  const int result = allocate(&memory, bytes);
  return result;
}

[[gnu::noinline]] int planted_pinned_leak(std::size_t bytes) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  const PrimaryContext context(driver);
  if (context.result() != 0) return context.result();
  const auto allocate = find<int (*)(void**, std::size_t, unsigned)>(driver, "cuMemHostAlloc");
  void* memory = nullptr;
  planted_pinned_leak_line = __LINE__ + 1;
  const int result = allocate(&memory, bytes, 0);
  return result;
}
}
