// cuwarden's own messages: one private spdlog logger that is never destroyed and is in no
// registry, so that the program's own spdlog is not touched.
#pragma once

#include <string_view>

#include "shim/support/settings.hpp"

namespace cuwarden::shim {

// Sets level and file of the messages. Warnings of earlier calls are kept, and written by this one.
void set_up_log(const Settings&) noexcept;

// Write one line each, if CUWARDEN_LOG includes the level. A line is written whole, or not at all.
// They never throw, and keep errno.
void log_error(std::string_view line) noexcept;
void log_warn(std::string_view line) noexcept;
void log_info(std::string_view line) noexcept;
void log_debug(std::string_view line) noexcept;

}  // namespace cuwarden::shim
