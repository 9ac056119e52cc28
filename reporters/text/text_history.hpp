// Sections of the text report about what was, not what is left: who held the memory at its peak,
// what went with its context, how host memory grew.
#pragma once

#include <string>

#include "reporters/text/text_elements.hpp"

namespace cuwarden {

// Adds the holders of each peak that is far above the bytes left at the end. For other peaks the
// list of leaks names the holders.
void add_peaks(const IndexedReport&, const Paint&, std::string& text);

// Adds the largest groups that a context released.
void add_released(const IndexedReport&, const Paint&, std::string& text);

// If page-locked memory was never freed, adds how it grew, and the process's RSS beside it.
void add_host_memory(const IndexedReport&, const Paint&, std::string& text);

}  // namespace cuwarden
