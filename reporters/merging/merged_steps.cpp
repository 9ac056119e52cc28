#include "reporters/merging/merged_steps.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "reporters/model/sums.hpp"

namespace cuwarden {
namespace {

// Bytes by the id of a leak or a process.
using BytesById = std::map<model::Id, std::uint64_t>;

// The sums of a step, as far as its rows were read.
struct Sums {
  model::Figure count = 0, bytes = 0;
  BytesById by_leak, by_process;
};

// Returns the ids, those with the most bytes first.
std::vector<model::Id> most_first(const BytesById& bytes) {
  std::vector<std::pair<model::Id, std::uint64_t>> rows(bytes.begin(), bytes.end());
  std::ranges::stable_sort(rows, std::greater(), [](const auto& row) { return row.second; });
  std::vector<model::Id> ids;
  for (const auto& [id, row_bytes] : rows) ids.push_back(id);
  return ids;
}

}  // namespace

std::vector<LeakingStep> leaking_steps(const model::MergedReport& report) {
  std::map<std::string, Sums> sums_by_name;
  for (const model::LeakOfProcess& row : report.leaks_of_processes) {
    for (const model::NamedStep& step : row.named_steps) {
      Sums& sums = sums_by_name[step.name];
      const std::uint64_t bytes = step.bytes.value_or(0);
      model::add_to(sums.count, step.count);
      model::add_to(sums.bytes, step.bytes);
      sums.by_leak[row.leak] += bytes;
      sums.by_process[row.process] += bytes;
    }
  }
  std::vector<LeakingStep> steps;
  for (const auto& [name, sums] : sums_by_name)
    steps.push_back({.name = name,
                     .count = sums.count,
                     .bytes = sums.bytes,
                     .leaks = most_first(sums.by_leak),
                     .processes = most_first(sums.by_process)});
  std::ranges::stable_sort(steps, std::greater(), &LeakingStep::bytes);
  return steps;
}

}  // namespace cuwarden
