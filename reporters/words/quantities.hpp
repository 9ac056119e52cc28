// Sizes, counts and times as people read and write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cuwarden {

std::string human_bytes(std::uint64_t bytes);     // "512 B", "1.5 KiB", "20.0 GiB"
std::string human_count(std::uint64_t count);     // "71,932"
std::string address_text(std::uint64_t address);  // "0x7f1240000000"
std::string human_time(std::uint64_t ns);         // "1.5 ms", "31.9 s", "5 min 3 s", "1 h 49 min"

// Parses a size such as "64MiB", "1.5 GB" or "4096" to bytes; null if it is none. Units: B, KiB,
// MiB, GiB, TiB, KB, MB, GB, TB; no unit: bytes.
std::optional<std::uint64_t> parse_size(std::string_view text);

}  // namespace cuwarden
