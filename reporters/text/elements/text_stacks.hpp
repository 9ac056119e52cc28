// Call stacks in the text report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "reporters/model/indexed_report.hpp"
#include "reporters/text/elements/text_elements.hpp"

namespace cuwarden {

// Returns the text of the report's frame with this id: source file, line and function. Module and
// offset replace an unknown file; the code address replaces an unknown module. Empty if the report
// has no frame with this id.
std::string visible_frame(const IndexedReport&, model::Id);

// Returns the id of the module that a person would name for the call: that of the stack's frame
// which users_frame() chooses. This is the program's own code if the stack has any; otherwise it
// may be a library's. Null if that frame is a Python function, if all frames are CUDA's, or if the
// stack or its module is unknown.
model::MaybeId calling_module(const IndexedReport&, model::MaybeId stack);

// Words for the location in the program's own code that led to a call. All texts are printable;
// empty: unknown.
struct CallingLocation {
  // Pattern of a suppression (a rule that excludes leaks; suppressions.hpp) that fits the call:
  // made of the function or, if that is unknown, of the module.
  std::string pattern;
  std::string file;        // path of the source file; empty: unknown
  std::uint64_t line = 0;  // line in the source file; 0: unknown
  // Function and module without line and folder: "Cache::insert in libcache.so", "step in
  // train.py".
  std::string caller;
  // File without folder, line and function: "cache.cpp:41 in Cache::insert(Key const&)".
  std::string location;
};

// Returns the location in the program's own code that a person would name for the call
// (users_frame()); empty texts if there is none.
CallingLocation calling_location(const IndexedReport&, model::MaybeId stack);

// Returns " at cache.cpp:41 in Cache::insert", the location in the program's own code that led to a
// call, for the end of a sentence; empty if it is unknown.
std::string at_calling_location(const IndexedReport&, model::MaybeId stack);

// Adds the frames of a stack to `text`, innermost first, a line each: file and line, or module and
// offset, then the function.
// Unless the style shows full stacks, frames that say nothing about the program are left out:
// innermost ones of CUDA's libraries, and outermost ones that called the program's first function.
// If there are no other frames, some of these stay. Two or more neighbouring frames of one library
// are one line with their number. If one to four neighbouring lines occur three or more times in a
// row, as in a recursion, a line behind their first occurrence counts the frames of the others.
// `most_lines`: most lines of frames; a further line counts the rest. If the style shows full
// stacks, each frame has a line with the whole path, and `most_lines` has no effect. A line "at
// FILE:LINE in FUNCTION" about the frame that a person would name for the call (users_frame())
// comes first, unless it is the first frame that is shown. A last line says if outer frames were
// not recorded. If `stack` is null or unknown, or has no frames, the only line says that no stack
// was recorded.
void add_stack(const IndexedReport&, model::MaybeId stack, std::size_t most_lines, const Style&,
               std::string& text);

}  // namespace cuwarden
