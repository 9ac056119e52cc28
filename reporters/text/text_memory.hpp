// Sections of the text report about the parts of a device's used memory, and about the part that no
// request can use.
#pragma once

#include <cstdint>
#include <string>

#include "reporters/text/text_elements.hpp"

namespace cuwarden {

// Divisor of a device's used bytes: an amount below 1/50 of them is not worth a line in the text.
inline constexpr std::uint64_t least_share = 50;

// Adds a line with a bar to `text` for each part of each device's memory at its last reading, such
// as live allocations, contexts and free memory. Devices that were never read are left out.
void add_accounts(const IndexedReport&, const Paint&, std::string& text);

// Adds a line to `text` for each library that is known to keep memory and hand out parts of it (a
// caching allocator): the bytes that it holds. Its unused part cannot be seen from outside.
void add_arenas(const IndexedReport&, const Paint&, std::string& text);

// Adds a section to `text` for each device that loses much memory at the end of the process: bytes
// locked in the driver's partly used 2 MiB pages (slabs), and bytes lost to rounding.
void add_fragmentation(const IndexedReport&, const Paint&, std::string& text);
// Adds a section to `text` for each device of which slabs locked much memory at some moment of the
// run, and clearly more than at the end.
void add_worst_fragmentation(const IndexedReport&, const Paint&, std::string& text);

}  // namespace cuwarden
