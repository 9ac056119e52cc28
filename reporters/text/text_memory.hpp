// Sections of the text report about the parts of a device's used memory, and about the part that no
// request can use.
#pragma once

#include <cstdint>
#include <string>

#include "reporters/text/text_elements.hpp"

namespace cuwarden {

// Least share of a device's used bytes that is worth a line in the text, as its reciprocal: 1/50 of
// them.
inline constexpr std::uint64_t least_share = 50;

// Returns words for an item of the report's table `accounts`, such as "locked in slabs" for
// "slab_waste"; an unknown item as it is.
std::string account_item_words(const std::string& item);

// Adds a line with a bar to `text` for each part of each device's memory at the device's last
// reading (cuMemGetInfo), such as live allocations, contexts and free memory. Devices that were
// never read are left out.
void add_accounts(const IndexedReport&, const Style&, std::string& text);

// Adds a section to `text` about frameworks that take memory from CUDA and hand it out themselves:
// how much they have taken and, by their own figures, how much of it is in use. Adds nothing if
// there are none.
void add_frameworks(const IndexedReport&, const Style&, std::string& text);

// Adds a section to `text` about reserves of libraries (memory that a library keeps for itself):
// the live bytes of the largest ones, and the calls by which the program gets them back. Adds
// nothing if the report has none.
void add_library_reserves(const IndexedReport&, const Style&, std::string& text);

// Adds a section to `text` for each device that loses much of its used memory at the end of the
// process (1/50 or more): unused bytes of the driver's partly used 2 MiB pages (slabs), and bytes
// lost to rounding. Devices that were never read are left out.
void add_fragmentation(const IndexedReport&, const Style&, std::string& text);
// Adds a section to `text` for each device of which 1/100 or more was at some moment of the run
// locked in slabs: unused, but in 2 MiB pages of the driver with live pieces. A device is left out
// if fewer bytes were locked at that moment than 5/4 of those locked at the end, or if it was never
// read.
void add_worst_fragmentation(const IndexedReport&, const Style&, std::string& text);

}  // namespace cuwarden
