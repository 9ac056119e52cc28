// Messages to the user about memory that cuwarden serves in the driver's stead, and about rescues.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::serving {

enum class Notice : std::uint8_t {
  spilled,
  cap_reached,
  host_is_full,
  not_supported,
  refused,
  not_shared,       // the program asked for an IPC handle of spilled memory
  not_granted,      // copies from another device may fail for spilled or pooled memory
  pool_not_shared,  // the program asked for an IPC handle of the pool's memory
  lost,             // the driver did not map memory again that was moved
  pool_not_supported,
  waits,
  waited_in_vain,
  // Reasons why the pool's memory stays where it is, though moving it could serve a request:
  memory_has_handle,
  library_reaches_memory,
  unknown_functions,
};

// A function that writes the message of a notice. `device`: no_device for host memory. `bytes`:
// size of the request, or the number in the message's text. `host_bytes`: the part of it in host
// memory.
using SayNotice = void (*)(Notice, DeviceOrdinal, std::uint64_t bytes,
                           std::uint64_t host_bytes) noexcept;

// Passes the first notice of each kind on to the function, and drops all later ones.
class Notices {
 public:
  // `say` may be null: nothing is said then.
  explicit Notices(SayNotice say) noexcept : say_(say) {}
  void tell_once(Notice notice, DeviceOrdinal device, std::uint64_t bytes,
                 std::uint64_t host_bytes = 0) noexcept {
    const std::uint32_t bit = 1u << static_cast<unsigned>(notice);
    if (say_ != nullptr && (told_.fetch_or(bit, std::memory_order_relaxed) & bit) == 0)
      say_(notice, device, bytes, host_bytes);
  }

 private:
  const SayNotice say_;
  std::atomic<std::uint32_t> told_{0};  // a bit for each Notice
};

}  // namespace cuwarden::serving
