// The section of the text report about memory that was not freed.
#pragma once

#include <string>
#include <vector>

#include "reporters/model/row_progress.hpp"
#include "reporters/text/elements/text_elements.hpp"
#include "reporters/text/headline/headline.hpp"
#include "reporters/text/text_report.hpp"

namespace cuwarden {

// Adds a line without a line feed to `text` about a group of allocations that were not freed: bytes
// and number, kind of memory, function, growth, the result of the search for pointers, and module.
void add_leak_words(const IndexedReport&, const model::LeakGroup&, const Style&, std::string& text);

// Adds lines to `text` about all memory that was not freed: one with its sum, or one that says that
// there is none. If there is some, further lines may follow: one if is_only_alive_at_exit() is
// true, one if memory is lost, and one if the search for pointers was incomplete. `done`: as for
// is_only_alive_at_exit().
void add_leaks_headline(
    const IndexedReport&, const Style&, std::string& text, RowDone done = [] {});

// True if memory counts as leaked, but may have been in use until the process ended by itself. No
// part of it is known to be lost or to grow, and no blocks of frameworks are known to grow. Leaks
// are put together as in this style of the text report. `done`: is called for each row, at most as
// often as the table `leak_groups` has rows.
bool is_only_alive_at_exit(
    const IndexedReport&, const Style&, RowDone done = [] {});

// Adds to `text` the section about blocks that frameworks have handed out and not got back, such as
// the memory of live tensors. Growing call stacks come first. The options say which blocks are
// shown. Adds nothing if blocks were not recorded. Adds nothing, too, if the options choose a
// module, or group leaks otherwise than by call stack.
void add_blocks(const IndexedReport&, const TextOptions&, const Style&, std::string& text);

// Adds to `text` the section about memory that was not freed: a line with the sum, then the groups
// of allocations that were not freed. The options say which groups are shown, and how they are put
// together.
// The line with the sum begins with LEAKS. It begins with STILL ALLOCATED if the process was still
// running, was killed or aborted, or its end is unknown. A second line says if none of the memory
// is known to be lost or to grow. If there is no such memory, one line says that all was freed, or
// that no allocation was recorded. This line is left out if the given headline is the same. `done`:
// is called for each row, at most passes_of_leaks times as often as the table `leak_groups` has
// rows.
void add_leaks(
    const IndexedReport&, const TextOptions&, const Headline&, const Style&, std::string& text,
    RowDone done = [] {});
inline constexpr std::size_t passes_of_leaks = 4;

}  // namespace cuwarden
