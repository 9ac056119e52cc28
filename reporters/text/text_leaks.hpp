// The section of the text report about memory that was not freed.
#pragma once

#include <string>
#include <vector>

#include "reporters/text/headline/headline.hpp"
#include "reporters/text/text_elements.hpp"
#include "reporters/text/text_report.hpp"

namespace cuwarden {

// Adds a text of one line, without a line feed, about allocations that were not freed: their bytes
// and number, kind of memory, function, growth, reachability and module.
void add_leak_words(const IndexedReport&, const model::LeakGroup&, const Style&, std::string& text);

// Adds a line to `text` with the sum of the memory that was not freed, or one that says that there
// is none. Adds a line about lost memory, and one about an incomplete search for pointers.
void add_leaks_headline(const IndexedReport&, const Style&, std::string& text);

// True if memory counts as leaked, but none of it is known to be lost, and neither it nor blocks of
// frameworks are known to grow: it was alive when the process ended by itself, and may have been in
// use.
bool is_only_alive_at_exit(const IndexedReport&);

// Returns words for a report in which no memory is known to grow: "none of it grows", or "none of
// it is known to grow" if the report does not say of all leaks and of all blocks of frameworks
// whether they grow.
std::string words_of_no_growth(const IndexedReport&);

// Returns the groups that the text report lists as leaks, in its order: lost and growing ones come
// first. Leaves out memory that libraries keep for themselves, and memory whose blocks a framework
// lists.
std::vector<model::LeakGroup> main_leaks(const IndexedReport&);

// Adds to `text` the section about blocks that frameworks have handed out and not got back (memory
// of live tensors), as the options choose them: those of call stacks that keep growing come first.
// Adds nothing if blocks were not recorded, or if the options group by something else than stacks
// or choose a module.
void add_blocks(const IndexedReport&, const TextOptions&, const Style&, std::string& text);

// Adds to `text` the section about memory that was not freed: one line with the sum, then the
// groups of allocations that were not freed, as the options choose and group them. The line begins
// with LEAKS; with NOT FREED if the process was killed before its normal end; with STILL ALLOCATED
// if it was still running. A second line says if none of it is known to be lost or to grow. Without
// such groups, the line says that all memory was freed, or that no allocation was recorded; it is
// left out if the report's headline, which is given, says so.
void add_leaks(const IndexedReport&, const TextOptions&, const Headline&, const Style&,
               std::string& text);

}  // namespace cuwarden
