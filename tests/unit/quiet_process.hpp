// A process for tests: nothing special is loaded, no lock is held, the host has room, and threads
// start. A test overrides what it is about.
#pragma once

#include <cstdint>
#include <string_view>
#include <thread>

#include "runtime_hooks/core/host_process.hpp"

namespace cuwarden {

// A process for tests: nothing special is loaded, no lock is held, the host has room, and threads
// start. A test overrides the functions that it is about.
class QuietProcess : public HostProcess {
 public:
  virtual ~QuietProcess() = default;
  // Returns false: no library that gives memory to other processes is loaded.
  bool shares_memory() noexcept override { return false; }
  // Returns false: no library that reaches device memory without the driver is loaded.
  bool reaches_memory() noexcept override { return false; }
  // Returns false: no loaded object calls functions of the driver that cuwarden does not know.
  bool may_call_unknown() noexcept override { return false; }
  // Returns false: the calling thread holds no lock of the program.
  bool holds_lock(std::string_view) noexcept override { return false; }
  // Returns false: no Python interpreter is loaded.
  bool find_python(PythonSymbols&) noexcept override { return false; }
  void python_not_read(std::uint32_t) noexcept override {}
  // Returns the largest number: the host has room for all that is spilled.
  std::uint64_t host_memory_left() noexcept override { return UINT64_MAX; }
  // Starts a thread that calls work(argument), and returns true.
  bool start_thread(void* (*work)(void*), void* argument) noexcept override {
    std::thread(work, argument).detach();
    return true;
  }
};

}  // namespace cuwarden
