// The process that cuwarden is loaded into, as far as only the shim can ask it or act in it.
#pragma once

#include <cstdint>
#include <string_view>

namespace cuwarden {

// The shim implements the interface. Several threads may call the functions at once.
class HostProcess {
 public:
  // Returns true where a library is loaded that gives device memory to other processes by the
  // driver's handles, which cuwarden's pool cannot make.
  virtual bool shares_memory() noexcept = 0;
  // Returns true where a library is loaded that may reach device memory without a call of the
  // driver.
  virtual bool reaches_memory() noexcept = 0;
  // Returns true where the calling thread holds the lock of this name, such as "python:gil".
  virtual bool holds_lock(std::string_view name) noexcept = 0;
  // Returns the bytes of memory that the host could give without harm.
  virtual std::uint64_t host_room_bytes() noexcept = 0;
  // Starts a detached thread that takes no signal of the program's. Returns false where it cannot.
  virtual bool start_thread(void* (*work)(void*), void* argument) noexcept = 0;

 protected:
  ~HostProcess() = default;
};

}  // namespace cuwarden
