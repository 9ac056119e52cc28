// Sums of named steps (such as tests) over several leaks.
#pragma once

#include <vector>

#include "reporters/model/memory.hpp"

namespace cuwarden::model {

// Makes one row of all steps with one name. Its figures are their sums; a sum of which a part is
// unknown is null. Sorts the rows by bytes, most first and unknown ones last, and by names.
void sum_up_named_steps(std::vector<NamedStep>&);

}  // namespace cuwarden::model
