// This process, as runtime_hooks asks about it, and the reclaimers that the program has registered.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime_hooks/core/host_process.hpp"
#include "runtime_hooks/rescue/reclaimers.hpp"

namespace cuwarden::shim {

class ThisProcess final : public HostProcess {
 public:
  // MPI, UCX, NVSHMEM.
  bool shares_memory() noexcept override;
  // Libraries for which shares_memory() returns true, and those that have network cards, disks or
  // video engines reach device memory by addresses that they were told of: no call shows when they
  // do.
  bool reaches_memory() noexcept override;
  bool holds_lock(std::string_view name) noexcept override;
  std::uint64_t host_room_bytes() noexcept override;
  bool start_thread(void* (*work)(void*), void* argument) noexcept override;
};
extern constinit ThisProcess this_process;

// Names of the loaded libraries for which reaches_memory() returns true, as a list to be read. May
// throw std::bad_alloc.
std::string libraries_that_reach_memory();

// Registered from the program's first moment on, whether there is a recording or not.
extern constinit rescue::Reclaimers reclaimers;

}  // namespace cuwarden::shim
