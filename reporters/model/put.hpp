// Takes the rows of a table one at a time, so that no table has to lie in memory as a whole.
#pragma once

#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden {

template <class Row>
using Put = FunctionRef<void(const Row&)>;

}  // namespace cuwarden
