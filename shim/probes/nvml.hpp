// NVML in use: found, begun, asked, ended. Its types and codes stand here as numbers, since nvml.h
// is not in every CUDA Toolkit: https://docs.nvidia.com/deploy/nvml-api.
#pragma once

#include <cstdint>
#include <span>

#include "runtime_hooks/core/files/standard_numbers.hpp"

namespace cuwarden::shim {

enum class NvmlAnswer : std::uint8_t {
  listed,           // it did what it was asked for
  no_library,       // it comes with the driver; containers may leave it out
  no_function,      // one that is needed is not in it
  not_initialised,  // it refused to begin
  no_device,        // it does not know the device
  not_permitted,
  not_supported,  // not for this kind of device
  too_many,       // more processes than are read; `found` says how many
  failed,         // for another reason
};

using NvmlDevice = void*;

// The use ends with the object. NVML counts its uses, so the program's own is not disturbed; it
// stays loaded. Allocates inside NVML and the loader, and may take as long as the driver does: not
// under a lock, nor in a signal handler. For callers that keep errno; dlerror is kept.
class Nvml {
 public:
  explicit Nvml(const char* library) noexcept;
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml();

  // `listed`, as long as nothing failed.
  NvmlAnswer answer() const noexcept { return answer_; }
  // nvmlReturn_t of what was done last; 0 where that was not done by NVML.
  int error() const noexcept { return error_; }

  // Returns the device, or slice of one, of this UUID (cuDeviceGetUuid_v2). Null: answer() says
  // why.
  NvmlDevice device(std::span<const char, 16> uuid) noexcept;

  template <class Function>
  Function find(const char* name) const noexcept {
    return reinterpret_cast<Function>(address_of(name));
  }
  // Notes the return value of a function of NVML, or that the function was not found.
  void answered(int error) noexcept;
  void lacks_function() noexcept;

 private:
  void* address_of(const char* name) const noexcept;

  // NVML and the loader open files of their own, and NVML keeps devices open until it has ended.
  const StandardNumbersHeld held_;
  void* library_ = nullptr;
  int (*end_)() = nullptr;
  int (*get_device_)(const char*, NvmlDevice*) = nullptr;
  bool begun_ = false;
  int error_ = 0;
  NvmlAnswer answer_ = NvmlAnswer::no_library;
};

}  // namespace cuwarden::shim
