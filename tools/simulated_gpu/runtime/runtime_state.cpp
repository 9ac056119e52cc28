// Lazy initialisation, the contexts of threads, and the last error.
#include "tools/simulated_gpu/runtime/runtime_state.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <mutex>

namespace cuwarden::simulated_runtime {
namespace {

constexpr int kMostDevices = 64;

using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t,
                                    CUdriverProcAddressQueryResult*);

struct Process {
  std::mutex mutex;
  CUcontext primary[kMostDevices] = {};
};

Process& process() {
  static auto* const made = new Process;
  return *made;
}

struct Thread {
  bool per_thread_default;
  int device;
  CUcontext bound;  // The primary context that the runtime made current on this thread.
  cudaError_t last;
};
constinit thread_local Thread thread{};

GetProcAddress get_proc_address() {
  static const GetProcAddress found = [] {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    void* symbol = library != nullptr ? dlsym(library, "cuGetProcAddress_v2") : nullptr;
    return reinterpret_cast<GetProcAddress>(symbol);
  }();
  return found;
}

cudaError_t bind(int device) {
  CUcontext context = nullptr;
  {
    Process& all = process();
    const std::lock_guard lock(all.mutex);
    if (all.primary[device] == nullptr) {
      RUNTIME_TRY(error_of(DRIVER(cuDevicePrimaryCtxRetain)(&all.primary[device], device)));
    }
    context = all.primary[device];
  }
  RUNTIME_TRY(error_of(DRIVER(cuCtxSetCurrent)(context)));
  thread.bound = context;
  return cudaSuccess;
}

// Releases the runtime's contexts while the process exits. A forked child has none, and the lock
// may be held by a thread that only the parent has.
struct AtEnd {
  AtEnd() {
    pthread_atfork(nullptr, nullptr, [] { in_child = true; });
  }
  ~AtEnd() {
    if (!in_child) release_primaries();
  }
  static inline bool in_child = false;
};
AtEnd at_end;

}  // namespace

void* query_driver(const char* name, int version, bool per_thread) {
  const GetProcAddress query = get_proc_address();
  if (query == nullptr) return nullptr;
  void* found = nullptr;
  const cuuint64_t flags =
      per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_DEFAULT;
  return query(name, &found, version, flags, nullptr) == CUDA_SUCCESS ? found : nullptr;
}

bool per_thread_default() { return thread.per_thread_default; }

PerThreadDefault::PerThreadDefault(bool per_thread) : outer_(thread.per_thread_default) {
  thread.per_thread_default = per_thread;
}

PerThreadDefault::~PerThreadDefault() { thread.per_thread_default = outer_; }

cudaError_t initialise() {
  if (get_proc_address() == nullptr) return cudaErrorInsufficientDriver;
  static const cudaError_t result = error_of(DRIVER(cuInit)(0));
  return result;
}

cudaError_t ensure_context() {
  RUNTIME_TRY(initialise());
  CUcontext current = nullptr;
  RUNTIME_TRY(error_of(DRIVER(cuCtxGetCurrent)(&current)));
  // A current context that the program has made.
  if (current != nullptr && current != thread.bound) return cudaSuccess;
  if (current != nullptr) {
    Process& all = process();
    const std::lock_guard lock(all.mutex);
    if (all.primary[thread.device] == current) return cudaSuccess;
  }
  return bind(thread.device);
}

cudaError_t record(cudaError_t error) {
  if (error != cudaSuccess) thread.last = error;
  return error;
}

cudaError_t last_error(bool clear) {
  const cudaError_t error = thread.last;
  if (clear) thread.last = cudaSuccess;
  return error;
}

int thread_device() { return thread.device; }

cudaError_t set_thread_device(int device, bool with_context) {
  RUNTIME_TRY(initialise());
  int count = 0;
  RUNTIME_TRY(error_of(DRIVER(cuDeviceGetCount)(&count)));
  if (device < 0 || device >= count) return cudaErrorInvalidDevice;
  thread.device = device;
  return with_context ? bind(device) : cudaSuccess;
}

void forget_primary(int device) {
  Process& all = process();
  const std::lock_guard lock(all.mutex);
  all.primary[device] = nullptr;
}

void release_primaries() {
  Process& all = process();
  const std::lock_guard lock(all.mutex);
  for (int device = 0; device < kMostDevices; ++device) {
    if (all.primary[device] == nullptr) continue;
    all.primary[device] = nullptr;
    DRIVER(cuDevicePrimaryCtxRelease)(device);
  }
}

}  // namespace cuwarden::simulated_runtime
