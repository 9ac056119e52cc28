// Loads NVML, NVIDIA's management library, and asks it about devices. NVML's types and codes are
// written as numbers here, since nvml.h is not in every CUDA Toolkit:
// https://docs.nvidia.com/deploy/nvml-api.
#pragma once

#include <cstdint>
#include <span>

#include "runtime_hooks/core/files/standard_numbers.hpp"

namespace cuwarden::shim {

// Outcomes of a question to NVML: an answer, or the reason why there is none.
enum class NvmlAnswer : std::uint8_t {
  listed,           // NVML answered the question; no failure
  no_library,       // NVML's library cannot be loaded, as in some containers
  no_function,      // NVML's library lacks a function that cuwarden needs
  not_initialised,  // nvmlInit_v2 failed, for another reason than permission
  no_device,        // NVML does not know the device
  not_permitted,    // the process lacks the permission (NVML_ERROR_NO_PERMISSION)
  not_supported,    // NVML does not answer the question for this kind of device
  too_many,         // NVML's list of processes is longer than the caller's array
  failed,           // NVML gave an error for which this enum has no other value
};

// NVML's handle of a device or MIG slice (nvmlDevice_t).
using NvmlDevice = void*;

// Loads and initialises NVML for as long as the object exists; the library stays loaded afterwards.
// NVML counts its users, so the program's own use is not disturbed. Allocates inside NVML and the
// loader, and may take as long as the driver does. So it must not be used under a lock or in a
// signal handler. Changes errno, but not dlerror.
class Nvml {
 public:
  // Loads and initialises NVML; answer() says if that failed. `library`: file name of NVML, such as
  // libnvidia-ml.so.1.
  explicit Nvml(const char* library) noexcept;
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  // Ends the use of NVML, if the constructor could initialise it. The library stays loaded.
  ~Nvml();

  // Returns `listed` if the last step succeeded; otherwise the reason of its failure. Steps are the
  // construction, a call of device(), and a result that answered() or lacks_function() has stored.
  NvmlAnswer answer() const noexcept { return answer_; }
  // Returns the code (nvmlReturn_t) of the last call of NVML; 0 is success. 0 also if NVML was not
  // called, or after lacks_function().
  int error() const noexcept { return error_; }

  // Returns the handle of the device or MIG slice with this UUID (cuDeviceGetUuid_v2). Null if NVML
  // gives none; then answer() says why. To be called only while answer() is `listed`.
  NvmlDevice device(std::span<const char, 16> uuid) noexcept;

  // Returns NVML's function of this name, such as nvmlDeviceGetMemoryInfo; null if the library
  // lacks it or was not loaded. `Function`: the type of a pointer to the function.
  template <class Function>
  Function find(const char* name) const noexcept {
    return reinterpret_cast<Function>(address_of(name));
  }
  // Stores the result of a call of NVML, for answer() and error(). To be called after the caller
  // has called a function that find() returned. `error`: the nvmlReturn_t that the function
  // returned; 0 for success.
  void answered(int error) noexcept;
  // Stores, for answer(), that NVML lacks a function that the caller needs: answer() is then
  // no_function.
  void lacks_function() noexcept;

 private:
  // Returns the address of this symbol in NVML's library; null if the library lacks the symbol or
  // was not loaded.
  void* address_of(const char* name) const noexcept;

  // Occupies those of the descriptors 0 to 2 that were closed when the object was made, as long as
  // it exists. So files of NVML and the loader get other numbers. NVML keeps devices open until
  // nvmlShutdown.
  const StandardNumbersHeld held_;
  void* library_ = nullptr;  // handle of NVML's library (dlopen); null if it could not be loaded
  // NVML's function nvmlShutdown; null if not found.
  int (*end_)() = nullptr;
  // NVML's function nvmlDeviceGetHandleByUUID; null if not found.
  int (*get_device_)(const char*, NvmlDevice*) = nullptr;
  // True if NVML was initialised, so that the destructor must end it.
  bool begun_ = false;
  // Result of error(): the code (nvmlReturn_t) of the last call of NVML; 0: success, or none was
  // made.
  int error_ = 0;
  // Result of answer(): `listed`, or the reason why the last step (construction, device(), or a
  // call of NVML) failed.
  NvmlAnswer answer_ = NvmlAnswer::no_library;
};

}  // namespace cuwarden::shim
