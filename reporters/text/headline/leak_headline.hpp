// The headline about lost or growing memory: all that one line of the program has left is summed
// up, however many call stacks reached the line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reporters/model/indexed_report.hpp"
#include "reporters/model/row_progress.hpp"
#include "reporters/text/elements/ranked_leaks.hpp"
#include "reporters/text/headline/headline.hpp"

namespace cuwarden {

// Leaks of one kind, on one device, that one line of the program made.
struct LeakOfLine {
  // Sums of the leaks. Stack, call and module are those of the leak that stands first.
  model::LeakGroup sum;
  // Stacks that look different in a style of the text report; never empty. Null: no stack is known.
  std::vector<model::MaybeId> stacks;
};

// Returns the leaks of the line that a person would look at first; null if nothing counts as
// leaked. Lines with lost memory come first, then those with memory that grows, then the largest. A
// line whose memory grows comes before all others if it has a hundred times the bytes of the first.
// Live blocks of frameworks, such as tensors, count if they grow. `done`: is called for each row,
// at most passes_of_first_leak times as often as the table `leak_groups` has rows.
std::optional<LeakOfLine> first_leak(
    const IndexedReport&, const Style&, RowDone done = [] {});
inline constexpr std::size_t passes_of_first_leak = passes_of_main_leaks + 1;

// Returns words for the live allocations of a line, such as "20.0 MiB in 20 allocations of device
// memory (GPU 0), made at killed.cpp:27 in serve_request". The line of code is left out if it is
// unknown. The number of call stacks follows if there are several, and words for the growth if the
// memory grows.
std::string held_words(const IndexedReport&, const LeakOfLine&);

// Returns the headline about lost or growing memory; null if there is none. `done`: is called for
// each row, at most passes_of_headline times as often as the table `leak_groups` has rows.
std::optional<Headline> headline_of_leaks(
    const IndexedReport&, const Style&, RowDone done = [] {});

}  // namespace cuwarden
