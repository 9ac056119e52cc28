// Sums of named steps (such as tests) over several leaks.
#pragma once

#include <vector>

#include "reporters/model/memory.hpp"

namespace cuwarden::model {

// Joins the rows of steps with equal names into one row, whose count and bytes are the sums. A sum
// is null if one of its parts is null. Then sorts the rows by bytes, most first and null ones last;
// rows with equal bytes are sorted by name.
void sum_up_named_steps(std::vector<NamedStep>&);

}  // namespace cuwarden::model
