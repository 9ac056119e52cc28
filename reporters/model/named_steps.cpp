#include "reporters/model/named_steps.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <string>

namespace cuwarden::model {

void add_named_steps(std::span<const NamedStep> steps, std::vector<NamedStep>& sum) {
  if (steps.empty()) return;
  std::map<std::string, NamedStep> by_name;
  const auto add = [&](const NamedStep& step) {
    const auto [row, is_new] = by_name.try_emplace(step.name, step);
    if (is_new) return;
    NamedStep& known = row->second;
    known.count = known.count.value_or(0) + step.count.value_or(0);
    known.bytes = known.bytes.value_or(0) + step.bytes.value_or(0);
  };
  std::ranges::for_each(sum, add);
  std::ranges::for_each(steps, add);
  sum.clear();
  for (const auto& [name, step] : by_name) sum.push_back(step);
  std::ranges::stable_sort(sum, std::greater(),
                           [](const NamedStep& step) { return step.bytes.value_or(0); });
}

}  // namespace cuwarden::model
