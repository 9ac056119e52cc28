// Words for the frames of a report's call stacks in formats of other programs.
#pragma once

#include <string>

#include "reporters/model/indexed_report.hpp"

namespace cuwarden {

// Stands for the frames of a group of allocations whose call stack was not recorded.
inline constexpr char unrecorded_stack[] = "[no call stack]";
// Stands for the outer frames of a call stack that was cut.
inline constexpr char unrecorded_frames[] = "[outer frames not recorded]";

// Returns the function's whole name; if it is unknown, "libtrain.so+0x1f20", or the code's address.
// The text is printable.
std::string function_words(const IndexedReport&, const model::Frame&);

// Returns function_words(), and the source file without its folder and the line behind it, as far
// as they are known: "step (train.py:41)". The text is printable.
std::string frame_words(const IndexedReport&, const model::Frame&);

// Returns the frames of the stack in words, a line for each, innermost first. The text is
// printable apart from its line feeds; unrecorded_stack if the report has no such stack.
std::string stack_words(const IndexedReport&, model::MaybeId stack);

// Returns the process in words: "train.py, rank 3, pid 4711 on node-7". Leaves out what is unknown.
// The text is printable.
std::string words_of_process(const model::Report&);

}  // namespace cuwarden
