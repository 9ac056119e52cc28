// The sections of the text report about memory that no request can use.
#pragma once

#include <string>

#include "reporters/text/elements/text_elements.hpp"
#include "reporters/text/text_report.hpp"

namespace cuwarden {

// Adds a section to `text` for each device that loses at least 1/50 of its used memory at the end
// of the process. Lost bytes are the unused bytes of slabs (2 MiB pages of the driver with live
// pieces), and bytes lost to rounding. Devices that were never read are left out.
// The call stacks that lock most follow, and a line counts those left out; the option `top` of 0
// shows all.
void add_fragmentation(const IndexedReport&, const TextOptions&, const Style&, std::string& text);

// Adds a section to `text` for each device of whose memory at least 1/100 was locked in slabs at
// the device's worst moment: the moment of the run at which most was locked. Locked bytes are
// unused, but in 2 MiB pages of the driver with live pieces. Devices that were never read are left
// out. A device is also left out if more than 4/5 of these bytes were still locked at the process's
// end. Call stacks follow as in add_fragmentation().
void add_worst_fragmentation(const IndexedReport&, const TextOptions&, const Style&,
                             std::string& text);

}  // namespace cuwarden
