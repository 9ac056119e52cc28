// NVML in use: found, begun, asked, ended. Its types and codes stand here as numbers, since nvml.h
// is not in every CUDA Toolkit: https://docs.nvidia.com/deploy/nvml-api.
#pragma once

#include <cstdint>
#include <span>

#include "runtime_hooks/core/files/standard_numbers.hpp"

namespace cuwarden::shim {

// Results of a question to NVML.
enum class NvmlAnswer : std::uint8_t {
  listed,           // NVML answered
  no_library,       // the library is missing, as in some containers
  no_function,      // a needed function is missing in the library
  not_initialised,  // nvmlInit failed
  no_device,        // NVML does not know the device
  not_permitted,
  not_supported,  // not for this kind of device
  too_many,       // more processes than are read; `found` says how many
  failed,         // for another reason
};

using NvmlDevice = void*;

// Loads and initialises NVML for as long as the object exists; the library stays loaded afterwards.
// NVML counts its users, so the program's own use is not disturbed. Allocates inside NVML and the
// loader, and may take as long as the driver does. So it must not be used under a lock or in a
// signal handler. Changes errno, but not dlerror.
class Nvml {
 public:
  // `library`: file name of NVML, such as libnvidia-ml.so.1.
  explicit Nvml(const char* library) noexcept;
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml();

  // Returns the reason of the first failure; `listed` if nothing failed.
  NvmlAnswer answer() const noexcept { return answer_; }
  // Returns the nvmlReturn_t of the last call of NVML; 0 if the last step was none.
  int error() const noexcept { return error_; }

  // Returns the device or MIG slice of this UUID (cuDeviceGetUuid_v2); null if that fails, and then
  // answer() says why.
  NvmlDevice device(std::span<const char, 16> uuid) noexcept;

  // Returns the function of NVML of this name; null if it is not found.
  template <class Function>
  Function find(const char* name) const noexcept {
    return reinterpret_cast<Function>(address_of(name));
  }
  // Note the return value of a function of NVML, or that the function was not found, for answer()
  // and error().
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
