#include "reporters/words/quantities.hpp"

#include <array>
#include <cstdio>
#include <utility>

namespace cuwarden {

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 1023.95 would be shown as 1024.0, which is 1.0 of the next unit.
  while (value >= 1023.95 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", value, units[unit]);
  return text;
}

std::string address_text(std::uint64_t address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

std::string hexadecimal(std::span<const std::uint8_t> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string human_count(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string human_time(std::uint64_t ns) {
  char text[48];
  const auto value = static_cast<double>(ns);
  const std::uint64_t seconds = (ns + 500'000'000) / 1'000'000'000;
  if (ns < 1'000) {
    std::snprintf(text, sizeof text, "%llu ns", static_cast<unsigned long long>(ns));
  } else if (ns < 999'950) {
    std::snprintf(text, sizeof text, "%.1f µs", value / 1e3);
  } else if (ns < 999'950'000) {
    std::snprintf(text, sizeof text, "%.1f ms", value / 1e6);
  } else if (ns < 59'950'000'000) {
    std::snprintf(text, sizeof text, "%.1f s", value / 1e9);
  } else if (seconds < 3600) {
    std::snprintf(text, sizeof text, "%llu min %llu s",
                  static_cast<unsigned long long>(seconds / 60),
                  static_cast<unsigned long long>(seconds % 60));
  } else {
    std::snprintf(text, sizeof text, "%llu h %llu min",
                  static_cast<unsigned long long>(seconds / 3600),
                  static_cast<unsigned long long>(seconds % 3600 / 60));
  }
  return text;
}

std::string human_supply(std::optional<std::uint64_t> steps, std::optional<std::uint64_t> minutes) {
  constexpr std::uint64_t a_minute_ns = 60'000'000'000, most_minutes = 30 * 24 * 60,
                          most_steps = 1'000'000;
  std::string by_steps, by_minutes;
  if (steps && *steps <= most_steps)
    by_steps = human_count(*steps) + (*steps == 1 ? " step" : " steps");
  if (minutes && *minutes <= most_minutes)
    by_minutes =
        *minutes < 60 ? human_count(*minutes) + " min" : human_time(*minutes * a_minute_ns);
  if (by_steps.empty() && by_minutes.empty()) return {};
  // Both growths go on at once.
  if (!by_steps.empty() && !by_minutes.empty())
    return "less than " + by_steps + ", and less than " + by_minutes;
  return "about " + by_steps + by_minutes;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  constexpr std::uint64_t most = 9'200'000'000'000'000'000;
  std::uint64_t whole = 0;
  double fraction = 0, scale = 1;  // the fraction is `fraction` / `scale`
  std::size_t at = 0;
  bool digits = false, behind_point = false;
  for (; at < text.size(); ++at) {
    const char letter = text[at];
    if (letter == '.' && !behind_point) {
      behind_point = true;
    } else if (letter < '0' || letter > '9') {
      break;
    } else {
      digits = true;
      const auto digit = static_cast<unsigned>(letter - '0');
      if (!behind_point) {
        if (whole > (most - digit) / 10) return std::nullopt;
        whole = whole * 10 + digit;
      } else {
        fraction = fraction * 10 + digit;
        scale *= 10;
      }
    }
  }
  if (!digits) return std::nullopt;
  while (at < text.size() && text[at] == ' ') ++at;
  const std::string_view unit = text.substr(at);
  constexpr std::uint64_t kibi = 1024, kilo = 1000;
  constexpr std::array<std::pair<std::string_view, std::uint64_t>, 10> units{{
      {"", 1},
      {"B", 1},
      {"KiB", kibi},
      {"MiB", kibi * kibi},
      {"GiB", kibi * kibi * kibi},
      {"TiB", kibi * kibi * kibi * kibi},
      {"KB", kilo},
      {"MB", kilo * kilo},
      {"GB", kilo * kilo * kilo},
      {"TB", kilo * kilo * kilo * kilo},
  }};
  for (const auto& [name, factor] : units) {
    if (unit != name) continue;
    const auto unit_bytes = static_cast<double>(factor);
    const double part = fraction * unit_bytes / scale;
    if (!(part < 2 * unit_bytes)) return std::nullopt;  // infinite or NaN: far too many digits
    const auto rest = static_cast<std::uint64_t>(part);
    if (whole > (most - rest) / factor) return std::nullopt;
    return whole * factor + rest;
  }
  return std::nullopt;
}

}  // namespace cuwarden
