// The section of the text report about memory that was not freed.
#pragma once

#include <string>

#include "reporters/text/headline/headline.hpp"
#include "reporters/text/text_elements.hpp"
#include "reporters/text/text_report.hpp"

namespace cuwarden {

// Adds to `text` the section about blocks that frameworks have handed out and not got back (memory
// of live tensors), as the options choose them: those of call stacks that keep growing come first.
// Adds nothing if blocks were not recorded, or if the options group by something else than stacks
// or choose a module.
void add_blocks(const IndexedReport&, const TextOptions&, const Style&, std::string& text);

// Adds to `text` the section about memory that was not freed: one line with the sum, then the
// groups of allocations that were not freed, as the options choose and group them. The line begins
// with LEAKS; with NOT FREED if the process was killed before its normal end; with STILL ALLOCATED
// if it was still running. Without such groups, the line says that all memory was freed, or that no
// allocation was recorded; it is left out if the report's headline, which is given, says so.
void add_leaks(const IndexedReport&, const TextOptions&, const Headline&, const Style&,
               std::string& text);

}  // namespace cuwarden
