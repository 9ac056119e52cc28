// Sections of the text report about where a device's memory is, and which part of it no request can
// use.
#pragma once

#include <cstdint>
#include <string>

#include "reporters/text/text_elements.hpp"

namespace cuwarden {

// The part of a device's used bytes below which an amount is not worth a line, as a divisor.
inline constexpr std::uint64_t least_share = 50;

// A bar for each row of a device's account. Devices that were never read are left out.
void add_accounts(const IndexedReport&, const Paint&, std::string& text);

// Memory of allocators that are known to hand out parts of what they have: what of it is in use
// cannot be seen from outside.
void add_arenas(const IndexedReport&, const Paint&, std::string& text);

// Adds what slabs and rounding lock at the end, if it is worth a line.
void add_fragmentation(const IndexedReport&, const Paint&, std::string& text);
// Adds what slabs locked at the worst moment of the run, if much of it is free again at the end.
void add_worst_fragmentation(const IndexedReport&, const Paint&, std::string& text);

}  // namespace cuwarden
