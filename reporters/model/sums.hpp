// Sums of the report's figures.
#pragma once

#include "reporters/model/values.hpp"

namespace cuwarden::model {

// Adds a figure to a sum. From the first unknown figure on, the sum is unknown: null.
inline void add_to(Figure& sum, Figure figure) {
  sum = sum && figure ? Figure(*sum + *figure) : Figure();
}

}  // namespace cuwarden::model
