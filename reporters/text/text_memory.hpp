// Sections of the text report about the parts of a device's used memory, and about memory that no
// request can use.
#pragma once

#include <cstdint>
#include <string>

#include "reporters/text/elements/text_elements.hpp"
#include "reporters/text/text_report.hpp"

namespace cuwarden {

// Reciprocal of the share of a device's used bytes, 1/50, from which a part of them gets further
// lines or a section. Each part has its line with a bar, however small it is.
inline constexpr std::uint64_t least_share = 50;

// Returns words for an item of the report's table `accounts`, such as "locked in slabs" for
// "slab_waste", or "live device memory" for "live_device" (memory_name()). Names of live memory
// that have more than 22 columns lack the word "memory". An unknown item is returned as it is.
std::string account_item_words(const std::string& item);

// Adds a part to `text` for each device: a heading, and a line with a bar for each part of its
// memory, such as live allocations, contexts and free memory. Live and implicit bytes are those at
// the end of the process. Free bytes are those of the device's last reading (cuMemGetInfo),
// corrected by later changes (Device::free_bytes). Parts of 0 bytes or less are left out. Lines
// without bars may follow, such as one about parts that add up to more than is in use. Devices that
// were never read are left out.
void add_accounts(const IndexedReport&, const Style&, std::string& text);

// Adds a section to `text` about frameworks (such as PyTorch) that take memory from CUDA and hand
// it out themselves: how much they have taken, and by their own figures, how much of it is in use.
// Adds nothing if there are none.
void add_frameworks(const IndexedReport&, const Style&, std::string& text);

// Adds a section to `text` about reserves of libraries (memory that a library keeps for itself):
// the live bytes of the largest ones, and the calls by which the program gets them back. Adds
// nothing if the report has none.
void add_library_reserves(const IndexedReport&, const Style&, std::string& text);

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
