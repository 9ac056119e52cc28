// Messages to the user about memory that cuwarden serves instead of the driver, and about refused
// requests that cuwarden tries to serve.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::serving {

// Messages to the user about memory that cuwarden serves, and about refused requests. Spilling
// means to serve a request with host memory behind device addresses. Meshing means to move the
// pool's memory so that two half-empty pages share one page of memory.
enum class Notice : std::uint8_t {
  spilled,        // a part of an allocation is in host memory, which is slower
  cap_reached,    // not spilled: host memory in use would exceed the limit that the user has set
  host_is_full,   // not spilled: the host has no room for the memory
  not_supported,  // not spilled: the device or its driver cannot map host memory
  refused,        // not spilled: the driver refused memory, addresses or access to it
  not_shared,     // the program asked for an IPC handle of spilled memory, which has none
  // Two devices of the process cannot reach each other's memory. Copies between them fail for
  // spilled memory and for the pool's memory.
  not_granted,
  pool_not_shared,  // the program asked for an IPC handle of the pool's memory, which has none
  lost,             // meshing lost contents of memory: the driver refused to map the memory again
  // Meshing is off from now on: a copy of memory, or another address of the same memory, showed
  // wrong contents.
  contents_differ,
  // Not meshed: a second address of memory takes memory of its own, or the driver refuses it.
  memory_not_shared,
  pool_not_supported,  // the device or its driver cannot map memory, so the pool serves none there
  waits,               // a refused request waits for other processes to free memory
  waited_in_vain,      // a request failed although it waited for other processes to free memory
  // Not meshed: the program made a handle by which other processes may reach the pool's memory.
  memory_has_handle,
  // Not meshed: a loaded library may reach the pool's memory without a driver call.
  library_reaches_memory,
  // Not meshed: the program looked up driver functions that cuwarden does not know, or is linked
  // with some.
  unknown_functions,
};

// Failures of a reclaimer: a function of the program that cuwarden calls to empty a cache.
enum class ReclaimerFailure : std::uint8_t {
  does_not_return,  // the reclaimer did not return in the time that a request waits for it
  threw,            // the reclaimer ended by an exception or by pthread_exit
  gave_nothing,     // the reclaimer returned 0: it gave no memory back
  no_thread,        // the reclaimer was not called, since no thread could be started for it
  slow              // the reclaimer gave memory back, but only after a second or more
};

// Writes messages to the user. The shim (the preloaded part of cuwarden) implements it.
class NoticeWriter {
 public:
  // Writes a message. `device`: the device of the memory; no_device: host memory. In `not_granted`,
  // one of the two devices. `bytes`: in most messages, the size of the request or allocation. In
  // `lost`, the bytes whose contents are lost. In `contents_differ`, the size of a page. In
  // `memory_not_shared`, the bytes of that memory. In `memory_has_handle`, `library_reaches_memory`
  // and `unknown_functions`, the most bytes that meshing might free. In `not_granted` and
  // `pool_not_supported`, 0. `host_bytes`: in `spilled` and `not_shared`, the part of the
  // allocation that is in host memory; otherwise 0.
  virtual void write(Notice, DeviceOrdinal device, std::uint64_t bytes,
                     std::uint64_t host_bytes) noexcept = 0;
  // Writes a message about the failure of a reclaimer (a function of the program that empties a
  // cache). `reclaimer`: name under which it was registered. `waited_ns`: nanoseconds for which the
  // request waited for it.
  virtual void write(ReclaimerFailure, std::string_view reclaimer,
                     std::uint64_t waited_ns) noexcept = 0;

 protected:
  ~NoticeWriter() = default;
};

// Writes each kind of message (Notice) to the user only once in the process. All threads may call
// the functions at any time.
class Notices {
 public:
  // Writes all messages to the user. To be called directly for messages that may come more than
  // once. Outlives this object.
  NoticeWriter& writer;

  explicit Notices(NoticeWriter& given) noexcept : writer(given) {}
  // Writes the message, unless a message with this Notice was written before, for any device.
  // `device`: the device of the memory; no_device: host memory. `bytes`: mostly the size of the
  // request or allocation; NoticeWriter::write() names the exceptions. `host_bytes`: in `spilled`
  // and `not_shared`, the part of the allocation that is in host memory; otherwise 0.
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
