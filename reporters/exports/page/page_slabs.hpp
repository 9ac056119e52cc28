// The maps of slabs in the form that the page reads.
#pragma once

#include <string>

#include "reporters/exports/page/page_stacks.hpp"
#include "reporters/model/indexed_report.hpp"

namespace cuwarden {

// Returns the JSON of a list of maps: of each incident, of the worst moment and of the end of the
// process, for each device. A map has a row for each slab, and the stacks that pin slabs.
std::string page_slabs(const IndexedReport&, StacksOfReport&);

}  // namespace cuwarden
