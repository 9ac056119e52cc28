// Sections of the text report about where a device's memory is, and what of it nobody can use.
#pragma once

#include <cstdint>
#include <string>

#include "reporters/text/text_elements.hpp"

namespace cuwarden {

// Of a device's used bytes: what is less is not worth a line.
inline constexpr std::uint64_t least_share = 50;

// A bar for each row of a device's account. Devices that were never read are left out.
void add_accounts(const IndexedReport&, const Paint&, std::string& text);

// Memory of allocators that are known to hand out parts of what they have: what of it is in use
// cannot be seen from outside.
void add_arenas(const IndexedReport&, const Paint&, std::string& text);

// In words, where slabs and rounding keep so much that somebody may ask where it went.
void add_fragmentation(const IndexedReport&, const Paint&, std::string& text);
// The same of the moment of the run at which slabs kept most, where that is gone at the end.
void add_worst_fragmentation(const IndexedReport&, const Paint&, std::string& text);

}  // namespace cuwarden
