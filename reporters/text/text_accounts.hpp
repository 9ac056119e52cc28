// The section of the text report about the parts of each device's memory.
#pragma once

#include <cstdint>
#include <string>

#include "reporters/text/elements/text_elements.hpp"

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

}  // namespace cuwarden
