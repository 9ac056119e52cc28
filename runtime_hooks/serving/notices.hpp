// Messages to the user about memory that cuwarden serves instead of the driver, and about refused
// requests that cuwarden tries to serve.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::serving {

// Messages to the user about memory that cuwarden serves, and about refused requests. Spilling is
// to serve a request with host memory behind device addresses. Meshing is to move the pool's memory
// together, so that two pages of addresses share one page.
enum class Notice : std::uint8_t {
  spilled,        // a part of an allocation is in host memory, which is slower
  cap_reached,    // not spilled: the most host memory that the user allows would be exceeded
  host_is_full,   // not spilled: the host has no room for the memory
  not_supported,  // not spilled: the device or its driver cannot map host memory
  refused,        // not spilled: the driver refused memory, addresses or access
  not_shared,     // the program asked for an IPC handle of spilled memory, which has none
  // Two devices of the process cannot reach each other's memory: copies between them fail for
  // spilled memory and the pool's memory.
  not_granted,
  pool_not_shared,  // the program asked for an IPC handle of the pool's memory, which has none
  lost,             // meshing failed and lost contents: the driver refused to map memory again
  // Two addresses of the same memory, or a copy, showed other contents than they should: nothing is
  // moved any more.
  contents_differ,
  pool_not_supported,  // the device or its driver cannot map memory, so the pool does not serve it
  waits,               // a request waits for memory of other processes
  waited_in_vain,      // a request failed after it waited
  memory_has_handle,   // not meshed: the program made a handle by which others may reach memory
  library_reaches_memory,  // not meshed: a loaded library may reach memory without a driver call
  unknown_functions,       // not meshed: the program looked up driver functions without a hook
};

// Failures of a reclaimer: a function of the program that cuwarden calls to empty a cache.
enum class ReclaimerFailure : std::uint8_t {
  does_not_return,  // the reclaimer did not return in the time that a request waits for it
  threw,            // the reclaimer ended by an exception or by pthread_exit
  gave_nothing,     // the reclaimer returned 0: it gave no memory back
  no_thread,        // the reclaimer was not called, since no thread could be started for it
  slow              // the reclaimer gave memory back, but only after a second or more
};

// Writes messages to the user. The shim (the part of cuwarden that is preloaded) implements it.
class NoticeWriter {
 public:
  // Writes a message. `device`: the device of the memory; no_device for host memory. In
  // `not_granted`, it is one of the two devices. `bytes`: in most messages, the size of the request
  // or allocation. In `lost`, `bytes` is the amount of memory whose contents are lost. In
  // `contents_differ`, it is the size of a page. In `memory_has_handle`, `library_reaches_memory`
  // and `unknown_functions`, it is the amount that moving memory might free. In `not_granted` and
  // `pool_not_supported`, it is 0. `host_bytes`: in `spilled` and `not_shared`, the part of the
  // allocation that is in host memory; otherwise 0.
  virtual void write(Notice, DeviceOrdinal device, std::uint64_t bytes,
                     std::uint64_t host_bytes) noexcept = 0;
  // Writes a message that the reclaimer which was registered with the name `reclaimer` has failed.
  // `waited_ns`: nanoseconds for which the request waited for it.
  virtual void write(ReclaimerFailure, std::string_view reclaimer,
                     std::uint64_t waited_ns) noexcept = 0;

 protected:
  ~NoticeWriter() = default;
};

// Writes each kind of message (Notice) to the user only once in the process. All threads may call
// the functions at any time.
class Notices {
 public:
  // The object that writes all messages to the user; called directly for those that may come more
  // than once. Outlives this object.
  NoticeWriter& writer;

  explicit Notices(NoticeWriter& given) noexcept : writer(given) {}
  // Writes the message if it is the first one of its enumerator, for any device; otherwise does
  // nothing. `device`: the device of the memory; no_device for host memory. `bytes`: mostly the
  // size of the request or allocation; NoticeWriter::write() tells the exceptions. `host_bytes`:
  // the part that is in host memory, for `spilled` and `not_shared`; otherwise 0.
  void tell_once(Notice notice, DeviceOrdinal device, std::uint64_t bytes,
                 std::uint64_t host_bytes = 0) noexcept {
    const std::uint32_t bit = 1u << static_cast<unsigned>(notice);
    if ((told_.fetch_or(bit, std::memory_order_relaxed) & bit) == 0)
      writer.write(notice, device, bytes, host_bytes);
  }

 private:
  std::atomic<std::uint32_t> told_{0};  // bit N is set once the Notice of value N was written
};

}  // namespace cuwarden::serving
