// Reads the text of /proc/PID/stat: "PID (NAME) STATE PPID ...".
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/files/small_file.hpp"

namespace cuwarden {

// Some of the facts in the text of /proc/PID/stat. A fact that the text does not have is 0.
struct ProcStat {
  // The kernel's name of the process, which points into the text of /proc/PID/stat; empty: unknown.
  std::string_view name;
  char state = '\0';          // letter of the process's state, such as 'Z' for a zombie; 0: unknown
  std::uint32_t parent = 0;   // pid of the parent process; 0: none, or unknown
  std::uint64_t threads = 0;  // number of the process's threads; 0: unknown
  // Start of the process, in clock ticks (_SC_CLK_TCK) since the machine's boot; 0: unknown.
  std::uint64_t start_ticks = 0;
};

// Returns the facts about a process in `text`, the contents of /proc/PID/stat. All are 0 or empty
// if the text has another form. The process's name may have blanks and brackets in it.
inline ProcStat proc_stat_in(std::string_view text) noexcept {
  // Numbers of fields of the text, which are counted from 1.
  constexpr std::size_t parent = 4, threads = 20, start = 22;
  const std::size_t open = text.find('('), close = text.rfind(')');
  if (open == text.npos || close == text.npos || close < open || close + 2 >= text.size())
    return {};
  ProcStat stat;
  stat.name = text.substr(open + 1, close - open - 1);
  stat.state = text[close + 2];
  std::string_view rest = text.substr(close + 3);
  for (std::size_t field = parent; field <= start; ++field) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const bool is_negative = rest.starts_with('-');
    if (is_negative) rest.remove_prefix(1);
    const auto number = take_number(rest);
    if (!number) break;
    if (is_negative) continue;
    if (field == parent) stat.parent = static_cast<std::uint32_t>(*number);
    if (field == threads) stat.threads = *number;
    if (field == start) stat.start_ticks = *number;
  }
  return stat;
}

// Returns the age, in nanoseconds, of a process that has started `start_ticks` clock ticks
// (_SC_CLK_TCK) after the machine's boot. 0 if `start_ticks` is 0 or lies in the future.
inline std::uint64_t age_ns_of(std::uint64_t start_ticks) noexcept {
  constexpr std::uint64_t ns_per_s = 1'000'000'000;
  const long per_second = sysconf(_SC_CLK_TCK);
  if (start_ticks == 0 || per_second <= 0) return 0;
  const auto hz = static_cast<std::uint64_t>(per_second);
  const std::uint64_t started = start_ticks / hz * ns_per_s + start_ticks % hz * ns_per_s / hz;
  const std::uint64_t now = time_ns_of(CLOCK_BOOTTIME);
  return now - std::min(now, started);
}

}  // namespace cuwarden
