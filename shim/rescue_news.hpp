// What the user is told, while the program runs, of how its refused requests fare.
#pragma once

#include <cstdint>

#include "runtime_hooks/families/rescues.hpp"

namespace cuwarden::shim {

// For families::Rescues: a line.
void say_of_rescue(families::RescueNews, DeviceOrdinal, std::uint64_t bytes,
                   std::uint64_t host_bytes) noexcept;

}  // namespace cuwarden::shim
