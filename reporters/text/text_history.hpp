// Sections of the text report about the run, in contrast to the memory left at its end: growth of
// devices' memory, holders of memory at its peak, memory that ends of contexts released, growth of
// host memory.
#pragma once

#include <string>

#include "reporters/text/text_elements.hpp"

namespace cuwarden {

// Adds a line to `text` for each device whose live memory grows: how long its free memory lasts if
// the growth goes on as before, and the line of the program's code at which it grows fastest.
void add_forecasts(const IndexedReport&, const Style&, std::string& text);

// Adds a part to `text` for each kind of memory on each device: the time at which most of its bytes
// were live (the peak), and up to three call stacks that held most of them. A kind is left out
// unless its peak exceeds its live bytes at the end by 1 MiB and by half of them: otherwise the
// list of leaks names the holders.
void add_peaks(const IndexedReport&, const Style&, std::string& text);

// Adds to `text` up to three call stacks with the most memory that was never freed but was released
// by the end of its context. A further line has the sum of the others. Adds nothing if there are
// none.
void add_released(const IndexedReport&, const Style&, std::string& text);

// Adds a table to `text`: the live bytes of page-locked memory, and the process's RSS, at the
// start, the end, and three moments between them. Adds nothing if no page-locked memory is live at
// the end, or if the RSS was never read.
void add_host_memory(const IndexedReport&, const Style&, std::string& text);

}  // namespace cuwarden
