// Sections of the text report about the whole run, and not only about its end: growth of devices'
// memory, holders of memory at its peak, memory that ends of contexts released, growth of host
// memory.
#pragma once

#include <string>

#include "reporters/text/elements/text_elements.hpp"

namespace cuwarden {

// Adds a line to `text` for each device whose live memory grows: how long its free memory lasts if
// the growth goes on as before, and the line of the program's code at which it grows fastest. Adds
// nothing if a request was refused for lack of memory.
void add_forecasts(const IndexedReport&, const Style&, std::string& text);

// Adds a part to `text` for each kind of memory on each device whose peak (most live bytes) is far
// above the live bytes at the end. The difference must be at least 1 MiB, and at least half of the
// live bytes at the end. The part names the time of the peak, and up to three call stacks that held
// most memory then. Where the peak is lower, the list of leaks names the holders.
void add_peaks(const IndexedReport&, const Style&, std::string& text);

// Adds to `text` up to three call stacks with most memory that was only released by the end of its
// context. A further line has the sum of the others. Adds nothing if there is no such memory.
void add_released(const IndexedReport&, const Style&, std::string& text);

// Adds a table to `text` with two rows: the live bytes of page-locked memory, and the process's
// RSS. Its columns are the start, the end, and three moments between them. Adds nothing if no
// page-locked memory is live at the end, or if the RSS was never read.
void add_host_memory(const IndexedReport&, const Style&, std::string& text);

}  // namespace cuwarden
