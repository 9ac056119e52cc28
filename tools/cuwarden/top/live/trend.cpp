#include "tools/cuwarden/top/live/trend.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace cuwarden {
namespace {

constexpr std::array<std::string_view, 8> bars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<std::string_view, 8> ascii_bars{"_", ".", ":", "-", "=", "+", "*", "#"};

using Bytes = std::optional<std::uint64_t>;

Bytes higher(const Bytes& left, const Bytes& right) { return std::max(left, right); }

// Returns the highest bytes that the ledger's timeline has in an interval; null if it has none.
Bytes highest_between(std::uint64_t start_ns, std::uint64_t end_ns,
                      const ledger::SeriesView& series) {
  Bytes highest;
  for (std::size_t i = 0; i < series.buckets_used && i < ledger::bucket_count; ++i) {
    const ledger::BucketView& bucket = series.buckets[i];
    if (bucket.width_ns == 0 || bucket.time_ns >= end_ns) continue;
    if (end_ns - bucket.time_ns >= bucket.width_ns + (end_ns - start_ns)) continue;
    highest = higher(highest, bucket.max_bytes);
  }
  return highest;
}

}  // namespace

void History::add(std::uint64_t time_ns, std::uint64_t bytes) {
  moments_.push_back({time_ns, bytes});
  while (moments_.front().time_ns + trend_interval_ns * (trend_intervals + 1) < time_ns)
    moments_.pop_front();
}

Trend History::trend(std::uint64_t now_ns, const ledger::SeriesView& series) const {
  const std::uint64_t last = now_ns / trend_interval_ns;
  Trend trend;
  trend.first = last - std::min<std::uint64_t>(last, trend_intervals - 1);
  trend.bytes.resize(static_cast<std::size_t>(last - trend.first + 1));
  for (const Moment& moment : moments_) {
    const std::uint64_t interval = moment.time_ns / trend_interval_ns;
    if (interval < trend.first || interval > last) continue;
    Bytes& bytes = trend.bytes[static_cast<std::size_t>(interval - trend.first)];
    bytes = higher(bytes, moment.bytes);
  }
  for (std::size_t i = 0; i < trend.bytes.size(); ++i) {
    const std::uint64_t start_ns = (trend.first + i) * trend_interval_ns;
    if (!trend.bytes[i])
      trend.bytes[i] = highest_between(start_ns, start_ns + trend_interval_ns, series);
  }
  return trend;
}

void add_trend(const Trend& added, Trend& sum) {
  if (sum.bytes.empty()) sum = {added.first, {}};
  sum.bytes.resize(std::max(sum.bytes.size(), added.bytes.size()));
  for (std::size_t i = 0; i < added.bytes.size(); ++i) {
    if (added.bytes[i]) sum.bytes[i] = sum.bytes[i].value_or(0) + *added.bytes[i];
  }
}

std::string sparkline(const Trend& trend, std::size_t width, bool ascii) {
  if (width == 0 || trend.bytes.empty()) return {};
  const std::size_t each = (trend_intervals + width - 1) / width;  // intervals of one bar
  std::vector<Bytes> values;
  Bytes highest;
  std::uint64_t bar = trend.first / each;
  values.emplace_back();
  for (std::size_t i = 0; i < trend.bytes.size(); ++i) {
    if ((trend.first + i) / each != bar) {
      values.emplace_back();
      ++bar;
    }
    values.back() = higher(values.back(), trend.bytes[i]);
    highest = higher(highest, trend.bytes[i]);
  }
  if (values.size() > width)
    values.erase(values.begin(), values.end() - static_cast<std::ptrdiff_t>(width));
  const auto& letters = ascii ? ascii_bars : bars;
  std::string line;
  for (const Bytes& value : values) {
    if (!value) {
      line += ' ';
      continue;
    }
    const double part = *value == 0 ? 0
                                    : static_cast<double>(*value) / static_cast<double>(*highest) *
                                          static_cast<double>(letters.size());
    const auto level = static_cast<std::size_t>(part);
    line += letters[std::min(level, letters.size() - 1)];
  }
  return line;
}

}  // namespace cuwarden
