#include "shim/probes/mps_limit.hpp"

#include <charconv>

namespace cuwarden::shim {
namespace {

std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Reads a number, and removes it from the beginning of the text.
std::optional<std::uint64_t> leading_number(std::string_view& text) noexcept {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<std::uint64_t> bytes_of(std::string_view text) noexcept {
  const auto value = leading_number(text);
  if (!value) return std::nullopt;
  text = trimmed(text);
  unsigned shift = 0;
  if (!text.empty()) {
    constexpr std::string_view units = "KMGT";
    const char letter = text.front() >= 'a' ? static_cast<char>(text.front() - 32) : text.front();
    const std::size_t unit = units.find(letter);
    if (unit != std::string_view::npos) {
      shift = 10 * (static_cast<unsigned>(unit) + 1);
      text.remove_prefix(1);
    }
    if (!text.empty() && text != "B" && text != "b" && text != "iB") return std::nullopt;
  }
  if (*value > UINT64_MAX >> shift) return std::nullopt;
  return *value << shift;
}

}  // namespace

std::optional<std::uint64_t> mps_limit_of(std::string_view text, DeviceOrdinal device) noexcept {
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    std::string_view part = trimmed(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    const auto ordinal = leading_number(part);
    part = trimmed(part);
    if (!ordinal || !part.starts_with('=') ||
        *ordinal != static_cast<std::uint64_t>(device.value) || device.value < 0)
      continue;
    part.remove_prefix(1);
    return bytes_of(trimmed(part));
  }
  return std::nullopt;
}

}  // namespace cuwarden::shim
