// The maps of slabs in the form that the page reads. A slab is a 2 MiB page from which the driver
// cuts small requests.
#pragma once

#include <string>

#include "reporters/exports/page/page_stacks.hpp"
#include "reporters/model/indexed_report.hpp"

namespace cuwarden {

// Returns a JSON list of maps of slabs, for each device: at each incident (refused request), at the
// moment at which most memory was locked in slabs, and at the end of the process. A map has a row
// for each slab, and one for each call stack whose live pieces lock memory in slabs. Maps without
// slabs are left out.
std::string page_slabs(const IndexedReport&, StacksOfReport&);

}  // namespace cuwarden
