// A process for tests: nothing special is loaded, no lock is held, the host has room, and threads
// start. A test overrides what it is about.
#pragma once

#include <cstdint>
#include <string_view>
#include <thread>

#include "runtime_hooks/core/host_process.hpp"

namespace cuwarden {

class QuietProcess : public HostProcess {
 public:
  virtual ~QuietProcess() = default;
  bool shares_memory() noexcept override { return false; }
  bool reaches_memory() noexcept override { return false; }
  bool may_call_unknown() noexcept override { return false; }
  bool holds_lock(std::string_view) noexcept override { return false; }
  std::uint64_t host_room_bytes() noexcept override { return UINT64_MAX; }
  bool start_thread(void* (*work)(void*), void* argument) noexcept override {
    std::thread(work, argument).detach();
    return true;
  }
};

}  // namespace cuwarden
