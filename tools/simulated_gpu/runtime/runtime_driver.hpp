// The simulated runtime's calls of the driver. The runtime finds libcuda.so.1 by dlopen, its
// cuGetProcAddress_v2 by dlsym, and all other functions by cuGetProcAddress_v2, each by name and
// version. dlopen and dlsym are called by the usual linkage, so that a preloaded library such as
// cuwarden's can stand in for them, as with the real runtime.
#pragma once

#include <atomic>
#include <bit>
#include <type_traits>

#include "driver_versions.hpp"
#include "tools/simulated_gpu/runtime/runtime_headers.hpp"

namespace cuwarden::simulated_runtime {

// Returns the address of a function of the driver (libcuda), as cuGetProcAddress finds it; null if
// there is no driver or it lacks the function. `name`: without _vN, such as cuMemAlloc. `version`:
// CUDA version that chooses among the function's versions, such as 12000 for 12.0. `per_thread`:
// true for the form whose default stream is the thread's own, if the function has one.
void* query_driver(const char* name, int version, bool per_thread);

// True while the calling thread is in a runtime function whose name ends in _ptsz or _ptds: the
// default stream is then the thread's own, otherwise the legacy one.
bool per_thread_default();

// While the object exists, per_thread_default() returns in this thread the value that the
// constructor got. Each exported function of the runtime that may use the default stream makes one
// at its start.
class PerThreadDefault {
 public:
  // `per_thread`: true if the default stream is to be the thread's own, false for the legacy one.
  explicit PerThreadDefault(bool per_thread);
  // Restores the result of per_thread_default() from before the object was made.
  ~PerThreadDefault();
  PerThreadDefault(const PerThreadDefault&) = delete;
  PerThreadDefault& operator=(const PerThreadDefault&) = delete;

 private:
  bool outer_;  // Result of per_thread_default() before the object was made.
};

// A function of the driver (libcuda), as a callable object. Only the specialisation for functions
// that return a CUresult is defined. `AskedAs`: type with the static members `name` and `version`,
// by which cuGetProcAddress finds the function. `Function`: type of a pointer to the function.
template <typename AskedAs, typename Function>
struct DriverFunction;

// A function of the driver (libcuda) that returns a CUresult, as a callable object. `AskedAs`: type
// with the static members `name` and `version`, by which cuGetProcAddress finds the function.
template <typename AskedAs, typename... Parameters>
struct DriverFunction<AskedAs, CUresult (*)(Parameters...)> {
  using Type = CUresult (*)(Parameters...);  // Type of a pointer to the function.

  // Calls the driver's function; the first call finds its address. Returns CUDA_ERROR_NOT_SUPPORTED
  // if the driver lacks the function.
  CUresult operator()(Parameters... parameters) const {
    const bool per_thread = per_thread_default();
    void* found = found_[per_thread].load(std::memory_order_acquire);
    if (found == nullptr) {
      found = query_driver(AskedAs::name, AskedAs::version, per_thread);
      if (found == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
      found_[per_thread].store(found, std::memory_order_release);
    }
    return reinterpret_cast<Type>(found)(parameters...);
  }

 private:
  // Addresses of the driver's function: [0] with the legacy default stream, [1] with the thread's
  // own; null: not yet found.
  static constinit inline std::atomic<void*> found_[2]{};
};

// Makes a callable object for the driver's function `symbol`, in exactly the version of this name:
// DRIVER(cuMemAlloc_v2) calls the second version.
#define DRIVER(symbol)                                                                           \
  ::cuwarden::simulated_runtime::DriverFunction<::cuwarden::simulated_runtime::asked_as::symbol, \
                                                decltype(&::symbol)> {}

// Converts a value of a type of the runtime to the driver's type for it, such as cudaStream_t to
// CUstream. Integers are converted by value; all other types must have equal sizes, and keep their
// bytes.
template <typename To, typename From>
To as(From value) {
  if constexpr (std::is_integral_v<To> && std::is_integral_v<From>)
    return static_cast<To>(value);
  else
    return std::bit_cast<To>(value);
}

}  // namespace cuwarden::simulated_runtime
