#include "reporters/words/wall_clock.hpp"

#include <chrono>
#include <cstdio>
#include <ctime>

namespace cuwarden {

std::optional<std::int64_t> parse_iso_8601(std::string_view given) {
  using namespace std::chrono;
  const std::string text(given);
  int y = 0, end = 0;
  unsigned mo = 0, d = 0, h = 0, mi = 0, s = 0, ns = 0;
  if (std::sscanf(text.c_str(), "%4d-%2u-%2uT%2u:%2u:%2u.%9uZ%n", &y, &mo, &d, &h, &mi, &s, &ns,
                  &end) != 7 ||
      static_cast<std::size_t>(end) != text.size())
    return std::nullopt;
  const year_month_day date{year(y), month(mo), day(d)};
  constexpr unsigned leap_second = 60;
  if (!date.ok() || y < 1970 || y > 2200 || h > 23 || mi > 59 || s > leap_second)
    return std::nullopt;
  return nanoseconds(sys_days(date).time_since_epoch() + hours(h) + minutes(mi) + seconds(s) +
                     nanoseconds(ns))
      .count();
}

std::string time_of_day(std::int64_t realtime_ns, bool with_date) {
  constexpr std::int64_t second_ns = 1'000'000'000;
  const std::time_t time = realtime_ns / second_ns;
  std::tm local{};
  if (localtime_r(&time, &local) == nullptr) return {};
  char text[sizeof "2200-12-31 23:59:60"];
  const std::size_t length =
      std::strftime(text, sizeof text, with_date ? "%Y-%m-%d %H:%M:%S" : "%H:%M:%S", &local);
  return {text, length};
}

}  // namespace cuwarden
