// Messages to the user about memory that cuwarden serves in the driver's stead, and about rescues.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

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

// Ways in which a reclaimer does not help.
enum class ReclaimerFailure : std::uint8_t { does_not_return, threw, gave_nothing, no_thread };

// The shim implements the interface.
class NoticeWriter {
 public:
  // Writes the message. `device`: no_device for host memory. `bytes`: size of the request, or the
  // number in the message's text. `host_bytes`: the part of it in host memory.
  virtual void write(Notice, DeviceOrdinal device, std::uint64_t bytes,
                     std::uint64_t host_bytes) noexcept = 0;
  virtual void write(ReclaimerFailure, std::string_view reclaimer) noexcept = 0;

 protected:
  ~NoticeWriter() = default;
};

// Passes the first notice of each kind on to the writer, and drops all later ones.
class Notices {
 public:
  // `writer` outlives the object.
  explicit Notices(NoticeWriter& writer) noexcept : writer_(writer) {}
  void tell_once(Notice notice, DeviceOrdinal device, std::uint64_t bytes,
                 std::uint64_t host_bytes = 0) noexcept {
    const std::uint32_t bit = 1u << static_cast<unsigned>(notice);
    if ((told_.fetch_or(bit, std::memory_order_relaxed) & bit) == 0)
      writer_.write(notice, device, bytes, host_bytes);
  }
  void tell_of_reclaimer(std::string_view name, ReclaimerFailure failure) noexcept {
    writer_.write(failure, name);
  }

 private:
  NoticeWriter& writer_;
  std::atomic<std::uint32_t> told_{0};  // a bit for each Notice
};

}  // namespace cuwarden::serving
