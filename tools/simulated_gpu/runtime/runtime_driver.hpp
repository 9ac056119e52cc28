// The runtime's way to the driver: dlopen("libcuda.so.1"), one dlsym for cuGetProcAddress_v2, and
// every function through that, each by the name and version of the very ABI that is called. All
// three go through the usual linkage, so that an interposer sees them.
#pragma once

#include <atomic>
#include <cstring>
#include <type_traits>

#include "driver_versions.hpp"
#include "tools/simulated_gpu/runtime/runtime_headers.hpp"

namespace cuwarden::simulated_runtime {

// Returns the driver's function; null if there is no driver or it lacks the function.
void* query_driver(const char* name, int version, bool per_thread);

// True if the call in progress came by a _ptsz or _ptds name.
bool per_thread_default();

// Sets per_thread_default() for the length of a scope.
class PerThreadDefault {
 public:
  explicit PerThreadDefault(bool per_thread);
  ~PerThreadDefault();
  PerThreadDefault(const PerThreadDefault&) = delete;
  PerThreadDefault& operator=(const PerThreadDefault&) = delete;

 private:
  bool outer_;
};

template <typename AskedAs, typename Function>
struct DriverFunction;

template <typename AskedAs, typename... Parameters>
struct DriverFunction<AskedAs, CUresult (*)(Parameters...)> {
  using Type = CUresult (*)(Parameters...);

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
  static constinit inline std::atomic<void*> found_[2]{};
};

// The driver function of exactly this ABI, as a callable object.
#define DRIVER(symbol)                                                                           \
  ::cuwarden::simulated_runtime::DriverFunction<::cuwarden::simulated_runtime::asked_as::symbol, \
                                                decltype(&::symbol)> {}

// Converts a value of the runtime's type to the driver's type of the same size.
template <typename To, typename From>
To as(From value) {
  if constexpr (std::is_integral_v<To> && std::is_integral_v<From>) {
    return static_cast<To>(value);
  } else {
    static_assert(sizeof(To) == sizeof(From));
    To result;
    std::memcpy(&result, &value, sizeof result);
    return result;
  }
}

}  // namespace cuwarden::simulated_runtime
