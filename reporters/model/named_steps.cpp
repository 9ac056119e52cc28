#include "reporters/model/named_steps.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <string>

#include "reporters/model/sums.hpp"

namespace cuwarden::model {

void sum_up_named_steps(std::vector<NamedStep>& steps) {
  if (steps.empty()) return;
  std::map<std::string, NamedStep> by_name;
  for (const NamedStep& step : steps) {
    const auto [row, is_new] = by_name.try_emplace(step.name, step);
    if (is_new) continue;
    add_to(row->second.count, step.count);
    add_to(row->second.bytes, step.bytes);
  }
  steps.clear();
  for (const auto& [name, step] : by_name) steps.push_back(step);
  std::ranges::stable_sort(steps, std::greater(), &NamedStep::bytes);
}

}  // namespace cuwarden::model
