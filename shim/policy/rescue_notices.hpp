// Messages to the user, while the program runs, about refused requests and their rescues.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime_hooks/serving/notices.hpp"

namespace cuwarden::shim {

// Writes each message as a line to the log.
class RescueNotices final : public serving::NoticeWriter {
 public:
  void write(serving::Notice, DeviceOrdinal, std::uint64_t bytes,
             std::uint64_t host_bytes) noexcept override;
  void write(serving::ReclaimerFailure, std::string_view reclaimer) noexcept override;
};

}  // namespace cuwarden::shim
