// The lines of /proc/meminfo.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "runtime_hooks/core/files/small_file.hpp"

namespace cuwarden {

// Finds the line "KEY:   NUMBER kB" in `text`, the whole of /proc/meminfo or its beginning. Returns
// the number in bytes. Returns null if there is no line with this key, or if the line has another
// form.
inline std::optional<std::uint64_t> meminfo_bytes(std::string_view text,
                                                  std::string_view key) noexcept {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == text.npos) break;  // the text ends inside this line
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (!line.starts_with(key) || line.substr(key.size(), 1) != ":") continue;
    line.remove_prefix(key.size() + 1);
    const auto value = take_number(line);
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max() / 1024;
    return value && line == " kB" && *value <= most ? std::optional(*value * 1024) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace cuwarden
