// The headline of a report: its most important event, the cause of the event, and what to do about
// it.
#pragma once

#include <cstdint>
#include <string>

#include "reporters/model/indexed_report.hpp"
#include "reporters/model/row_progress.hpp"
#include "reporters/text/elements/text_elements.hpp"

namespace cuwarden {

// The gravity of the event that a headline is about. `alarm`: the program failed, was killed or
// leaks. `caution`: something may be wrong. `fine`: nothing is wrong.
enum class Gravity : std::uint8_t { fine, caution, alarm };

// The headline of a report: its most important event, with cause and remedy. All texts are
// printable and without line feeds.
struct Headline {
  Gravity gravity = Gravity::fine;
  std::string title{};  // event in a few words, such as "OUT OF MEMORY"
  // Text that follows the title without a blank of its own, such as " at 14:03:11: cudaMalloc of
  // 8.0 GiB failed".
  std::string sentence{};
  std::string cause{};   // cause of the event; empty: `sentence` names it, or it is unknown
  std::string advice{};  // remedy, for the user; empty: there is none, or it is unknown
  // Row of the table `incidents` that the headline is about; null: it is about another event.
  model::MaybeId incident{};
  // Returns the title and the sentence as one line.
  std::string line() const { return title + sentence; }
};

// Returns the headline of a report: about the first of these events that has occurred.
// 1. The kernel's OOM killer killed the process.
// 2. A request failed, nearly always for lack of memory; of several, the one that failed last
//    counts.
// 3. A signal killed the process, it aborted, or it ended in an unknown way.
// 4. Memory was lost or grows.
// 5. Requests were rescued.
// If the process was killed more than ten minutes after the last failed request, event 3 comes
// before event 2. Without any of these events, the headline says that nothing was leaked, how much
// memory was live at the end, or that no allocation was recorded. Call stacks are counted as this
// style of the text report tells them apart. `done`: is called for each row,
// at most passes_of_headline times as often as the table `leak_groups` has rows.
Headline headline_of(
    const IndexedReport&, const Style&, RowDone done = [] {});
inline constexpr std::size_t passes_of_headline = 4;

// Returns the headline that a report without any event has: that nothing was leaked, how much
// memory was live at the end, or that no allocation was recorded.
Headline plain_headline(const IndexedReport&);

// Returns the headline about an incident (a refused request) that cuwarden did not serve: the
// request, the moment, the line of the program that made it, and the cause with its remedy.
// Holders of memory are put together as in this style of the text report.
Headline headline_of_incident(const IndexedReport&, const model::Incident&, const Style&);

// Adds the headline to `text`: one line with title and sentence, one with the cause, and one with
// the advice. A cause or an advice that is empty gets no line.
void add_headline(const Headline&, const Style&, std::string& text);

// Returns words for the refused request of the incident, such as "cudaMalloc of 8.0 GiB (GPU 0)" or
// "cuLaunchKernel needing 2.1 GiB (GPU 0)".
std::string request_words(const model::Incident&);

}  // namespace cuwarden
