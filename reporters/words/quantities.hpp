// Sizes, counts and times as people read and write them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cuwarden {

// Returns a size as text, in units of 1024, such as "512 B", "1.5 KiB" or "20.0 GiB".
std::string human_bytes(std::uint64_t bytes);
// Returns a number as text with commas, such as "71,932".
std::string human_count(std::uint64_t count);
// Returns an address in hexadecimal, such as "0x7f1240000000".
std::string address_text(std::uint64_t address);
// Returns the bytes in hexadecimal, two digits each, such as "00ff" for a build id.
std::string hexadecimal(std::span<const std::uint8_t> bytes);
// Returns a length of time, given in nanoseconds, as text such as "1.5 ms", "31.9 s", "5 min 3 s"
// or "1 h 49 min".
std::string human_time(std::uint64_t ns);

// Returns how long free memory lasts, as text: "about 2,431 steps" or "about 3 h 20 min" if one
// number is known; "less than 5 steps, and less than 10 min" if both are. Returns an empty text if
// neither is known. More than 30 days or a million steps count as unknown.
std::string human_supply(std::optional<std::uint64_t> steps, std::optional<std::uint64_t> minutes);

// Parses a size such as "64MiB", "1.5 GB" or "4096", and returns its bytes. A size without a
// decimal point is exact. With one, a part of a byte is dropped, and the result can be one byte too
// large or too small. Returns null if the text is no size, has a sign or hundreds of digits behind
// the point, or means more than 9.2e18 bytes. Units, in exactly this spelling: B, KiB, MiB, GiB,
// TiB (powers of 1024), KB, MB, GB, TB (powers of 1000). Without a unit, the number means bytes.
std::optional<std::uint64_t> parse_size(std::string_view text);

}  // namespace cuwarden
