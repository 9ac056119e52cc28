// The sentence of a report that matters most: what has happened, where, and what to do about it.
#pragma once

#include <cstdint>
#include <string>

#include "reporters/model/indexed_report.hpp"
#include "reporters/text/text_elements.hpp"

namespace cuwarden {

// The gravity of a headline. alarm: the program failed, was killed or leaks. caution: something may
// be wrong. fine: nothing is.
enum class Gravity : std::uint8_t { fine, caution, alarm };

// The headline of a report. All texts are printable and without line feeds.
struct Headline {
  Gravity gravity = Gravity::fine;
  std::string title{};     // event in a word or three, such as "OUT OF MEMORY"
  std::string sentence{};  // rest of the sentence behind the title, such as " at 14:03:11: cudaM…"
  std::string cause{};     // cause of the event in one sentence; empty: the sentence has it
  std::string advice{};    // the thing to do about it; empty: nothing, or unknown
  model::MaybeId incident{};  // row of the table `incidents` that it is about; null: none
  // Returns title and sentence together.
  std::string line() const { return title + sentence; }
};

// Returns the headline of a report. These events count, the first one that the report has: the
// process was killed by the kernel's OOM killer; a request failed for lack of memory, of several
// the one that failed last; the process was killed by a signal or aborted; memory was lost or
// grows; requests were rescued. A kill more than ten minutes after the last failure comes before
// that failure. Otherwise the headline says that nothing was leaked, or how much was live at the
// end.
Headline headline_of(const IndexedReport&);

// Returns the headline as if no event had happened: that nothing was leaked, or how much was live
// at the end.
Headline plain_headline(const IndexedReport&);

// Returns the first line of an incident that a rung did not serve, as a headline: the request, the
// moment, the line of the program that asked, and the cause with its remedy.
Headline headline_of_incident(const IndexedReport&, const model::Incident&);

// Adds the headline to `text`: its line, and a line each for its cause and its advice. The caller
// adds an empty line before it where one is wanted.
void add_headline(const Headline&, const Style&, std::string& text);

// Returns a text such as "cudaMalloc of 8.0 GiB (GPU 0)" or "cuLaunchKernel needing 2.1 GiB (GPU
// 0)".
std::string request_words(const model::Incident&);

// Returns a number by which leaks are sorted: lost and growing ones come first (0), then lost ones,
// then growing ones, then all others (3).
int rank_of_leak(const model::LeakGroup&);

// Returns words for the growth of a leak that grows, such as "growing by 2.0 MiB a step since step
// 3": by steps if the program marked four or more; otherwise by the minute if the group was watched
// for some seconds, since a shorter time gives only a guess.
std::string growth_words(const model::LeakGroup&);

}  // namespace cuwarden
