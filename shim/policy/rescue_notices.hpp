// Messages to the user, while the program runs, about refused requests and their rescues.
#pragma once

#include <cstdint>

#include "runtime_hooks/serving/notices.hpp"

namespace cuwarden::shim {

// Writes the line of the notice to the log. `bytes`: size of the request; `host_bytes`: its part in
// host memory. Unused arguments are 0. A function for serving::SayNotice.
void say_of_rescue(serving::Notice, DeviceOrdinal, std::uint64_t bytes,
                   std::uint64_t host_bytes) noexcept;

}  // namespace cuwarden::shim
