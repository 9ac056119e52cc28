// The callback by which functions hand out the rows of a report's table.
#pragma once

#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden {

// A callback that takes the rows of a table one at a time, so that no table has to lie in memory as
// a whole. The row is valid only during the call, so the callback copies the parts that it keeps.
template <class Row>
using Put = FunctionRef<void(const Row&)>;

}  // namespace cuwarden
