// The leaks of a report in the order in which a person looks at them, and their growth in words.
#pragma once

#include <string>
#include <vector>

#include "reporters/model/indexed_report.hpp"
#include "reporters/model/row_progress.hpp"
#include "reporters/text/elements/text_elements.hpp"

namespace cuwarden {

// Returns the rank by which leaks are sorted, lowest first. 0: lost and growing. 1: lost. 2:
// growing. 3: neither is known.
int rank_of_leak(const model::LeakGroup&);

// Returns words for the growth of a leak that grows. If its growth by steps of the program is
// known: "growing by 2.0 MiB a step since step 3". Otherwise "growing by 2.0 MiB a minute". If its
// allocations were made within five seconds, the rate would be a guess: "growing".
std::string growth_words(const model::LeakGroup&);

// Returns words for a report in which no memory is known to grow: "none of it grows". If the report
// lacks the growth of some leaks or blocks of frameworks: "none of it is known to grow".
std::string words_of_no_growth(const IndexedReport&);

// Returns the groups of allocations that the text report lists as leaks, in its order: lost and
// growing ones come first, then the largest. Memory that libraries keep for themselves is left out,
// and so is memory whose blocks a framework lists. `Style`: that of the list. `done`: is called for
// each row, at most passes_of_main_leaks times as often as the table `leak_groups` has rows.
std::vector<model::LeakGroup> main_leaks(
    const IndexedReport&, const Style&, RowDone done = [] {});
inline constexpr std::size_t passes_of_main_leaks = 2;

}  // namespace cuwarden
