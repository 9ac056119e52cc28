// Words for the frames of a report's call stacks, as files for other programs show them.
#pragma once

#include <string>

#include "reporters/model/indexed_report.hpp"

namespace cuwarden {

// Text in place of the frames of a call stack that was not recorded.
inline constexpr char unrecorded_stack[] = "[no call stack]";
// Text in place of the outer frames of a call stack that were not recorded.
inline constexpr char unrecorded_frames[] = "[outer frames not recorded]";

// Returns the whole name of the frame's function. If it is unknown, returns module and offset, such
// as "libtrain.so+0x1f20". If the module is unknown, too: the code's address, or "unknown code".
// The text is printable.
std::string function_words(const IndexedReport&, const model::Frame&);

// Returns function_words(), followed by the source file without its folder, and the line, as far as
// these are known: "step (train.py:41)". The text is printable.
std::string frame_words(const IndexedReport&, const model::Frame&);

// Returns the frames of the stack in words, a line for each, innermost first. Returns
// unrecorded_stack if the report has no such stack, or no frames of it. If the stack is truncated,
// unrecorded_frames is the last line. The text is printable apart from its line feeds.
std::string stack_words(const IndexedReport&, model::MaybeId stack);

// Returns words for the process of the report, such as "train.py, rank 3, pid 4711 on node-7".
// Unknown parts are left out; an unknown program is "unknown program". The text is printable.
std::string words_of_process(const model::Report&);

}  // namespace cuwarden
