// What the host has for requests that the device has no room for, and what is said of it.
#pragma once

#include <string>

#include "runtime_hooks/families/recorder.hpp"
#include "shim/settings.hpp"

namespace cuwarden::shim {

pool::SpillSettings spill_settings(const Settings&) noexcept;
std::string spill_text(const Settings&);  // as the report has it
// For families::Rescues: a line.
void say_of_rescue(families::RescueNews, DeviceOrdinal, std::uint64_t bytes,
                   std::uint64_t host_bytes) noexcept;

}  // namespace cuwarden::shim
