#include "tools/cuwarden/top_view.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "reporters/printable.hpp"
#include "reporters/quantities.hpp"

namespace cuwarden {
namespace {

using ledger::RegionId;

class Lines {
 public:
  explicit Lines(const ViewSize& size) : size_(size) {}
  void add(std::string line, std::string_view colour = {}) {
    if (size_.columns != 0 && cut(line, size_.columns) != line) {
      line = cut(std::move(line), size_.columns - 1) + "…";
    }
    while (line.ends_with(' ')) line.pop_back();
    if (!colour.empty() && size_.colour) {
      line = std::string(colour) + line + std::string(end_of_colour);
    }
    text_ += line + "\n";
    ++count_;
  }
  const std::string& text() const { return text_; }
  std::size_t count() const { return count_; }

 private:
  const ViewSize& size_;
  std::string text_;
  std::size_t count_ = 0;
};

std::string place_of(Kind kind, DeviceOrdinal device) {
  const std::string name(kind_name(kind));
  return device == no_device ? name : name + " " + std::to_string(device.value);
}

constexpr const char* not_known_yet = "-";

// "FUNCTION  FILE:LINE" in so many columns: rather less of the function than of the line.
std::string fitted(const std::string& where, std::size_t columns) {
  const std::size_t gap = where.rfind("  ");
  if (cut(where, columns) == where || gap == where.npos) return where;
  const std::string line = where.substr(gap + 2);
  constexpr std::size_t least = 6;
  if (line.size() + least > columns) return where;
  return cut(where.substr(0, gap), columns - line.size() - 2) + "… " + line;
}

std::string per_second(double bytes) {
  const double size = std::abs(bytes);
  if (size < 1) return "0";
  return (bytes < 0 ? "-" : "+") + human_bytes(static_cast<std::uint64_t>(size)) + "/s";
}

std::string rate(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 99.95 ? "%.1f" : "%.0f", std::max(value, 0.0));
  return text;
}

std::string program_of(const ledger::ProcessView& process) {
  const std::string path(process.program);
  return printable(path.substr(path.rfind('/') + 1));
}

std::string age(const WatchedProcess& watched) {
  const std::uint64_t start = watched.file->reader().process().start_monotonic_ns;
  const std::uint64_t now = watched.recent->newest().time_ns;
  return human_time(now > start ? now - start : 0);
}

const char* marker(SortBy by, SortBy column) { return by == column ? "*" : ""; }

void add_keys(const ViewSize& size, Lines& lines) {
  if (size.keys) lines.add("q quits; sort by b live bytes, g growth, r allocations/s (last 10 s)");
}

void add_head(const WatchedProcess& watched, const ViewSize& size, Lines& lines) {
  const ledger::Reader& reader = watched.file->reader();
  const ledger::ProcessView process = reader.process();
  const Sample& now = watched.recent->newest();
  lines.add(program_of(process) + " (pid " + std::to_string(watched.pid) + ") " +
                (watched.ended ? "has ended after " : "running for ") + age(watched),
            bold_colour);
  for (std::uint64_t row = 1; row < reader.rows(RegionId::devices); ++row) {
    const auto device = reader.device(row);
    if (!device) continue;
    std::string line = "GPU " + std::to_string(device->ordinal.value) + ": " +
                       printable(std::string(device->name));
    if (device->at != ledger::ReadingAt::none && device->total_bytes >= device->free_bytes) {
      line += ", " + human_bytes(device->total_bytes - device->free_bytes) + " of " +
              human_bytes(device->total_bytes) + " in use";
    }
    lines.add(line);
  }
  for (const ledger::SeriesView& series : now.series) {
    std::string line =
        padded(place_of(series.kind, series.device), 22) +
        padded(human_bytes(series.live_bytes) + " live in " + human_count(series.live_count), 28) +
        "peak " + human_bytes(series.peak_bytes);
    if (series.failures > 0) line += ", " + human_count(series.failures) + " failed";
    lines.add(line);
  }
  if (!watched.growing->empty()) {
    const std::size_t count = watched.growing->count();
    lines.add(human_count(count) + (count == 1 ? " stack grows" : " stacks grow") +
                  " without bound, by " + human_bytes(watched.growing->bytes_per_minute()) + "/min",
              bold_colour);
  }
  add_keys(size, lines);
  lines.add("");
}

// Before where it is, for a narrow terminal cuts that.
std::string growing_mark(const GrowingGroups& growing, std::uint32_t group) {
  const auto rate = growing.bytes_per_minute(group);
  return rate ? "[grows " + human_bytes(*rate) + "/min] " : "";
}

}  // namespace

std::size_t process_view_head(const WatchedProcess& watched, const ViewSize& size) {
  Lines lines(size);
  add_head(watched, size, lines);
  return lines.count() + 1;  // the columns' names
}

std::string process_view(const WatchedProcess& watched, const std::vector<GroupSample>& groups,
                         SortBy by, const PlaceNames& names, const ViewSize& size) {
  Lines lines(size);
  add_head(watched, size, lines);
  const Recent& recent = *watched.recent;
  // Where something is allocated matters most: on a narrow terminal the call makes room for it.
  const bool is_wide = size.columns == 0 || size.columns >= 110;
  const auto row = [&](const std::string& live, const std::string& count, const std::string& growth,
                       const std::string& made, const std::string& kind, const std::string& api,
                       const std::string& where) {
    if (!is_wide) {
      return padded(live, 10, true) + padded(count, 8, true) + padded(growth, 13, true) +
             padded(made, 9, true) + " " + padded(kind, 12) + " " +
             fitted(where, size.columns - std::min<std::size_t>(size.columns, 54));
    }
    return padded(live, 10, true) + padded(count, 9, true) + padded(growth, 14, true) +
           padded(made, 10, true) + "  " + padded(kind, 16) + " " + padded(api, 20) + " " + where;
  };
  const bool knows_changes = recent.knows_changes();
  lines.add(row(std::string("LIVE") + marker(by, SortBy::bytes), "COUNT",
                std::string("GROWTH") + marker(by, SortBy::growth),
                std::string("ALLOCS/s") + marker(by, SortBy::rate), "KIND, GPU", "CALL", "WHERE"),
            reverse_colour);
  const std::size_t shown = size.rows == 0 ? groups.size() : std::min(size.rows, groups.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const GroupSample& group = groups[i];
    const Change change = recent.of_group(group);
    const PlaceName name = names.get(group.id);
    lines.add(row(
        human_bytes(group.live_bytes), human_count(group.live_count),
        knows_changes ? per_second(change.bytes_per_second) : not_known_yet,
        knows_changes ? rate(change.allocations_per_second) : not_known_yet,
        is_wide ? place_of(group.kind, group.device) : cut(place_of(group.kind, group.device), 12),
        name.api, growing_mark(*watched.growing, group.id) + name.where));
  }
  if (groups.empty()) lines.add("nothing is live");
  if (shown < groups.size() && size.columns == 0) {
    lines.add("… " + std::to_string(groups.size() - shown) + " more stacks");
  }
  return lines.text();
}

std::string processes_view(const std::vector<WatchedProcess>& processes, SortBy by,
                           const ViewSize& size) {
  Lines lines(size);
  // Which program it is matters more than how many allocations it has.
  const bool shows_count = size.columns == 0 || size.columns >= 100;
  const auto row = [&](const std::string& pid, const std::string& device, const std::string& host,
                       const std::string& count, const std::string& growth, const std::string& made,
                       const std::string& age, const std::string& program) {
    return padded(pid, 8, true) + padded(device, 11, true) + padded(host, 11, true) +
           (shows_count ? padded(count, 11, true) : "") + padded(growth, 14, true) +
           padded(made, 10, true) + padded(age, 13, true) + "  " + program;
  };
  std::vector<const WatchedProcess*> order;
  for (const WatchedProcess& watched : processes) order.push_back(&watched);
  std::ranges::stable_sort(order, [by](const WatchedProcess* left, const WatchedProcess* right) {
    const auto rank = [by](const WatchedProcess& watched) {
      const Sample& now = watched.recent->newest();
      const Change change = watched.recent->of_all();
      return by == SortBy::bytes    ? static_cast<double>(now.device_bytes + now.host_bytes)
             : by == SortBy::growth ? change.bytes_per_second
                                    : change.allocations_per_second;
    };
    return rank(*left) > rank(*right);
  });
  lines.add("cuwarden top: " + std::to_string(order.size()) +
                (order.size() == 1 ? " process" : " processes") + " with a ledger",
            bold_colour);
  add_keys(size, lines);
  lines.add("");
  lines.add(row("PID", std::string("DEVICE") + marker(by, SortBy::bytes), "PINNED", "COUNT",
                std::string("GROWTH") + marker(by, SortBy::growth),
                std::string("ALLOCS/s") + marker(by, SortBy::rate), "RUNNING", "PROGRAM"),
            reverse_colour);
  const std::size_t shown = size.rows == 0 ? order.size() : std::min(size.rows, order.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const WatchedProcess& watched = *order[i];
    const Sample& now = watched.recent->newest();
    const Change change = watched.recent->of_all();
    lines.add(
        row(std::to_string(watched.pid), human_bytes(now.device_bytes), human_bytes(now.host_bytes),
            human_count(now.live_count),
            watched.recent->knows_changes() ? per_second(change.bytes_per_second) : not_known_yet,
            watched.recent->knows_changes() ? rate(change.allocations_per_second) : not_known_yet,
            age(watched), program_of(watched.file->reader().process())));
  }
  return lines.text();
}

}  // namespace cuwarden
