// Sums of named steps (such as tests) over several leaks.
#pragma once

#include <span>
#include <vector>

#include "reporters/model/memory.hpp"

namespace cuwarden::model {

// Adds the steps to `sum`: a step whose name `sum` has already adds its figures to that row. Sorts
// `sum` by bytes, most first, and by names.
void add_named_steps(std::span<const NamedStep>, std::vector<NamedStep>& sum);

}  // namespace cuwarden::model
