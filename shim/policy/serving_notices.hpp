// Messages to the user while the program runs, about memory that cuwarden serves in the driver's
// stead, and about requests for which it waits.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime_hooks/serving/notices.hpp"

namespace cuwarden::shim {

// Writes each message as a warning or error line to cuwarden's log (CUWARDEN_LOG).
class ServingNotices final : public serving::NoticeWriter {
 public:
  // Writes the notice's line to the log. If a seccomp filter of the program confines the calling
  // thread, the notice is lost. `DeviceOrdinal`: device of the memory; no_device for host memory.
  // `bytes`: size of the request or of the memory that the notice is about. `host_bytes`: the part
  // of `bytes` that lies in host memory, for Notice::spilled and Notice::not_shared; otherwise 0.
  void write(serving::Notice, DeviceOrdinal, std::uint64_t bytes,
             std::uint64_t host_bytes) noexcept override;
  // Writes a line that says why a reclaimer, a callback of the program that empties a cache, did
  // not help, or that a request waited long for it. `reclaimer`: the name under which the program
  // registered it. `waited_ns`: nanoseconds for which a request waited for it.
  void write(serving::ReclaimerFailure, std::string_view reclaimer,
             std::uint64_t waited_ns) noexcept override;
};

}  // namespace cuwarden::shim
