#include "reporters/text/elements/moments.hpp"

#include "reporters/words/quantities.hpp"
#include "reporters/words/wall_clock.hpp"

namespace cuwarden {
namespace {

// Returns the time of day at a moment of the run; empty if the time of the start is unknown.
std::string clock_at(const IndexedReport& report, std::uint64_t since_start_ns) {
  constexpr std::uint64_t long_ns = 12ull * 3600 * 1'000'000'000;
  // A foreign report may claim any number.
  constexpr std::uint64_t longest_ns = std::uint64_t{1} << 60;
  const auto start = parse_iso_8601(report->process.start);
  if (!start || since_start_ns > longest_ns) return "";
  return time_of_day(*start + static_cast<std::int64_t>(since_start_ns), since_start_ns > long_ns);
}

}  // namespace

std::string moment_of(const IndexedReport& report, std::uint64_t since_start_ns) {
  const std::string clock = clock_at(report, since_start_ns), elapsed = human_time(since_start_ns);
  return clock.empty() ? "after " + elapsed : "at " + clock + ", " + elapsed + " into the run";
}

std::string short_moment(const IndexedReport& report, std::uint64_t since_start_ns) {
  constexpr std::uint64_t minute_ns = 60ull * 1'000'000'000;
  std::string elapsed = human_time(since_start_ns);
  if (report->process.end_ns.value_or(0) < minute_ns) return elapsed;
  const std::string clock = clock_at(report, since_start_ns);
  return clock.empty() ? elapsed : clock + " (" + elapsed + ")";
}

}  // namespace cuwarden
