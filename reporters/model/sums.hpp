// Sums of the report's figures.
#pragma once

#include "reporters/model/values.hpp"

namespace cuwarden::model {

// Adds a figure to a sum. The sum becomes null (unknown) if the figure is null, and then stays
// null.
inline void add_to(Figure& sum, Figure figure) {
  sum = sum && figure ? Figure(*sum + *figure) : Figure();
}

}  // namespace cuwarden::model
