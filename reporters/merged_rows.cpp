#include "reporters/merged_rows.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "reporters/growth.hpp"
#include "reporters/text_elements.hpp"

namespace cuwarden {
namespace {

using nlohmann::json;

constexpr const char* sums[] = {"count",
                                "bytes",
                                "allocations",
                                "unmapped_count",
                                "locked_bytes",
                                "growth_bytes_per_minute",
                                "slab_locked_bytes"};

bool is_figure(const json& row, const char* name) {
  const auto value = row.find(name);
  return value != row.end() && value->is_number_unsigned();
}

void add_births(const json& row, Growth& all) {
  const std::uint64_t count = number_of(row, "count"), last = number_of(row, "last_ns");
  if (count == 0) return;
  const std::uint64_t bytes = number_of(row, "bytes") / count;
  const Growth own{.first_ns = number_of(row, "first_ns"), .end_ns = all.end_ns};
  const auto quarters = row.find("count_by_quarter");
  const bool known = quarters != row.end() && quarters->is_array() && quarters->size() == 4 &&
                     std::ranges::all_of(*quarters, &json::is_number_unsigned);
  if (!known) {  // reports of before there was such a field
    all.add(own.first_ns, bytes);
    if (count > 1) all.add(last, bytes, count - 1);
    return;
  }
  // Of a quarter in which more than one was made the middle stands for all.
  for (std::size_t quarter = 0; quarter < 4; ++quarter) {
    const std::uint64_t births = (*quarters)[quarter].get<std::uint64_t>();
    const std::uint64_t middle = own.first_ns + quarter * own.quarter_ns() + own.quarter_ns() / 2;
    if (births > 0)
      all.add(count == 1 ? own.first_ns : std::min(middle, std::max(last, own.first_ns)), bytes,
              births);
  }
}

// What grows by itself grows, whatever it is added to; so do rows that only together have survivors
// from most of the time.
void judge_growth(const std::vector<const json*>& rows, std::uint64_t end_ns, json& merged) {
  const bool any = std::ranges::any_of(
      rows, [](const json* row) { return text_of(*row, "growth", "") == "growing"; });
  if (any) {
    merged["growth"] = "growing";
    return;
  }
  Growth all{.first_ns = number_of(merged, "first_ns"), .end_ns = end_ns};
  for (const json* row : rows) add_births(*row, all);
  if (!all.growing()) return;
  merged["growth"] = all.name();
  if (const auto rate = all.bytes_per_minute()) merged["growth_bytes_per_minute"] = *rate;
}

}  // namespace

std::size_t MergedRows::visible_stack(const json& id) {
  const auto [known, is_new] = stacks_by_id_.try_emplace(id, 0u);
  if (!is_new) return known->second;
  std::vector<std::size_t> lines;
  if (const json* stack = report_.stack(id)) {
    for (const json& frame : stack->at("frames")) {
      const auto [line, is_new_frame] = lines_by_frame_.try_emplace(frame, 0u);
      if (is_new_frame)
        line->second =
            lines_.try_emplace(visible_frame(report_, frame), lines_.size()).first->second;
      lines.push_back(line->second);
    }
    lines.push_back(stack->at("truncated") == true ? 1 : 0);
  }
  known->second = stacks_.try_emplace(std::move(lines), stacks_.size()).first->second;
  return known->second;
}

json MergedRows::merge(const std::vector<const json*>& rows) const {
  json merged = *rows.front();
  if (rows.size() == 1) return merged;
  for (const char* name : sums) {
    std::optional<std::uint64_t> sum;
    for (const json* row : rows)
      if (is_figure(*row, name)) sum = sum.value_or(0) + number_of(*row, name);
    if (sum) merged[name] = *sum;
  }
  for (const json* row : rows) {
    if (is_figure(*row, "first_ns") &&
        (!is_figure(merged, "first_ns") || row->at("first_ns") < merged["first_ns"]))
      merged["first_ns"] = row->at("first_ns");
    if (is_figure(*row, "last_ns") &&
        (!is_figure(merged, "last_ns") || row->at("last_ns") > merged["last_ns"]))
      merged["last_ns"] = row->at("last_ns");
  }
  if (merged.contains("growth"))
    judge_growth(rows, number_of(report_.root().at("process"), "end_ns"), merged);
  return merged;
}

std::vector<json> MergedRows::of(const std::vector<const json*>& rows,
                                 std::initializer_list<const char*> alike) {
  std::vector<std::vector<const json*>> parts;
  std::map<std::pair<std::size_t, std::string>, std::size_t> known;
  for (const json* row : rows) {
    std::string key;
    for (const char* name : alike) {
      const auto value = row->find(name);
      if (value != row->end()) key += value->dump(-1, ' ', false, json::error_handler_t::replace);
      key += '\n';
    }
    const auto place =
        known.try_emplace({visible_stack(row->at("stack")), std::move(key)}, parts.size());
    if (place.second) parts.emplace_back();
    parts[place.first->second].push_back(row);
  }
  std::vector<json> merged;
  merged.reserve(parts.size());
  for (const auto& part : parts) merged.push_back(merge(part));
  std::ranges::stable_sort(merged, [](const json& left, const json& right) {
    return number_of(left, "bytes") > number_of(right, "bytes");
  });
  return merged;
}

std::vector<json> merged_leaks(const ReportDocument& report) {
  std::vector<const json*> leaks;
  for (const json& group : report.table("leak_groups")) {
    if (group.at("released_by").is_null() && group.at("suppressed") == false)
      leaks.push_back(&group);
  }
  return MergedRows(report).of(leaks, {"kind", "device", "api", "module"});
}

}  // namespace cuwarden
