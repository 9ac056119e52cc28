// No stdio and no exceptions: the shim reads them inside the program's first CUDA call.
#include "reporters/words/setting_values.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "reporters/words/quantities.hpp"

namespace cuwarden {
namespace {

// Returns the number that the text begins with, and the rest of the text.
template <class Number>
std::optional<std::pair<Number, std::string_view>> leading(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return std::pair(value, text);
}

template <class Value, std::size_t count>
std::optional<Value> named(const std::string_view (&names)[count], std::string_view text) {
  for (std::size_t i = 0; i < count; ++i)
    if (names[i] == text) return static_cast<Value>(i);
  return std::nullopt;
}

// Removes the suffix from the text's end. Returns false, and changes nothing, if it is not there.
bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

}  // namespace

std::optional<LogLevel> parse_log_level(std::string_view text) {
  return named<LogLevel>(log_level_names, text);
}

std::optional<PoolMode> parse_pool_mode(std::string_view text) {
  return named<PoolMode>(pool_mode_names, text);
}

std::optional<ReachabilityMode> parse_reachability_mode(std::string_view text) {
  return named<ReachabilityMode>(reachability_mode_names, text);
}

std::optional<MeshMode> parse_mesh_mode(std::string_view text) {
  if (text == "off") return MeshMode{.moves = false};
  MeshMode mode;
  mode.is_visible = take_suffix(text, ":visible");
  mode.by_kernel = take_suffix(text, ":kernel");
  mode.verifies = text == "verify";
  return mode.verifies || text == "on" ? std::optional(mode) : std::nullopt;
}

std::optional<unsigned> parse_number(std::string_view text, unsigned most) {
  const auto number = leading<unsigned>(text);
  if (!number || !number->second.empty() || number->first > most) return std::nullopt;
  return number->first;
}

// "30s", "2m", "500ms", "1h", or "0".
std::optional<std::uint64_t> parse_duration_ns(std::string_view text) {
  constexpr std::uint64_t longest = 366ull * 24 * 3600;  // seconds; no user wants a longer wait
  constexpr std::pair<std::string_view, std::uint64_t> units[] = {
      {"ms", 1'000'000}, {"s", 1'000'000'000}, {"m", 60'000'000'000}, {"h", 3'600'000'000'000}};
  const auto number = leading<std::uint64_t>(text);
  if (!number) return std::nullopt;
  const auto& [value, unit] = *number;
  if (value == 0 && unit.empty()) return 0;
  for (const auto& [name, ns] : units) {
    if (unit != name) continue;
    if (value > longest * 1'000'000'000 / ns) return std::nullopt;
    return value * ns;
  }
  return std::nullopt;
}

// "8GiB", "1.5GB", "25%", or "0"; with ":visible" behind it.
std::optional<SpillAmount> parse_spill(std::string_view text) {
  SpillAmount amount{.is_visible = take_suffix(text, ":visible")};
  if (text.ends_with('%')) {
    text.remove_suffix(1);
    const auto percent = parse_number(text, 100);
    if (!percent) return std::nullopt;
    amount.percent = *percent;
    return amount;
  }
  const auto bytes = parse_size(text);
  // A number alone is more likely to be meant as gigabytes than as bytes.
  if (!bytes || (text != "0" && (*bytes == 0 || !text.ends_with('B')))) return std::nullopt;
  amount.bytes = *bytes;
  return amount;
}

std::optional<ReportConditions> parse_report_if(std::string_view text) {
  ReportConditions conditions;
  if (text == "always") return conditions;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    const auto which = named<unsigned>(report_condition_names, text.substr(start, comma - start));
    if (!which) return std::nullopt;
    if (*which == 0) conditions.leak = true;
    if (*which == 1) conditions.incident = true;
    if (*which == 2) conditions.abnormal = true;
    start = comma + 1;
  }
  return conditions;
}

std::string report_if_text(const ReportConditions& conditions) {
  std::string text;
  const bool asked[] = {conditions.leak, conditions.incident, conditions.abnormal};
  for (std::size_t i = 0; i < std::size(asked); ++i)
    if (asked[i]) text += (text.empty() ? "" : ",") + std::string(report_condition_names[i]);
  return text.empty() ? "always" : text;
}

std::optional<unsigned> parse_report_keep(std::string_view text) {
  const auto number = parse_number(text, 1'000'000);
  return number && *number > 0 ? number : std::nullopt;
}

bool are_file_patterns(std::string_view text) {
  for (;;) {
    const std::size_t end = text.find(',');
    const std::string_view pattern = text.substr(0, end);
    if (pattern.find_first_not_of("/*") == text.npos || pattern.find(' ') != text.npos)
      return false;
    // A star elsewhere would match no file.
    const std::size_t star = pattern.find('*');
    if (star != text.npos && (star + 1 != pattern.size() || pattern.find('/') != text.npos))
      return false;
    if (end == text.npos) return true;
    text.remove_prefix(end + 1);
  }
}

bool is_report_path(std::string_view text) {
  if (text == "-") return false;  // a user who means standard output; "./-" is a file
  if (text == path_of_no_report) return true;
  // Paths there belong to the system: descriptors of the process, terminals, devices.
  if (text.starts_with("/proc/") || (text.starts_with("/dev/") && !text.starts_with("/dev/shm/")))
    return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') continue;
    ++i;
    if (i == text.size() || std::string_view("ehpjrsa%").find(text[i]) == std::string_view::npos)
      return false;
  }
  return !text.empty();
}

}  // namespace cuwarden
