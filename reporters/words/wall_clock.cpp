#include "reporters/words/wall_clock.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>

namespace cuwarden {

std::optional<std::int64_t> parse_iso_8601(std::string_view text) {
  using namespace std::chrono;
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  constexpr std::string_view shape = "0000-00-00T00:00:00.";  // a zero stands for any digit
  constexpr std::size_t most_decimals = 9;
  if (text.size() < shape.size() + sizeof "0Z" - 1 || text.back() != 'Z') return std::nullopt;
  for (std::size_t at = 0; at != shape.size(); ++at)
    if (shape[at] == '0' ? !is_digit(text[at]) : text[at] != shape[at]) return std::nullopt;
  std::string decimals(text.substr(shape.size(), text.size() - shape.size() - 1));
  if (decimals.size() > most_decimals || !std::all_of(decimals.begin(), decimals.end(), is_digit))
    return std::nullopt;
  decimals.resize(most_decimals, '0');

  // Returns the number whose digits begin at `at`.
  const auto number = [](std::string_view digits, std::size_t at, std::size_t length) {
    unsigned value = 0;
    for (const char digit : digits.substr(at, length))
      value = value * 10 + static_cast<unsigned>(digit - '0');
    return value;
  };
  const int y = static_cast<int>(number(text, 0, 4));
  const year_month_day date{year(y), month(number(text, 5, 2)), day(number(text, 8, 2))};
  const unsigned h = number(text, 11, 2), mi = number(text, 14, 2), s = number(text, 17, 2);
  constexpr unsigned leap_second = 60;
  if (!date.ok() || y < 1970 || y > 2200 || h > 23 || mi > 59 || s > leap_second)
    return std::nullopt;
  return nanoseconds(sys_days(date).time_since_epoch() + hours(h) + minutes(mi) + seconds(s) +
                     nanoseconds(number(decimals, 0, most_decimals)))
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
