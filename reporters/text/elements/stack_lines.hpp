// Lines in which the text report draws the frames of a call stack. Frames that say nothing about
// the program are left out, and neighbouring frames may share a line.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "reporters/model/indexed_report.hpp"
#include "reporters/owners/named_frame.hpp"
#include "reporters/text/elements/text_elements.hpp"
#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden {

// Frames of a call stack, innermost first. They belong to the report; none is null.
using StackFrames = std::vector<const model::Frame*>;

// A frame in words. `location`: source file and line, or else module and offset, or else the code's
// address, or "unknown code"; empty if only the function is known. `function`: empty if it is
// unknown; " (inlined)" is added to that of an inlined frame.
struct FrameWords {
  std::string location, function;
};

// A line about frames of a stack: about one frame in words, or about several that it counts.
struct DrawnLine {
  std::size_t first, end;  // indices of the line's frames: from `first` to the one before `end`
  // Number of lines above whose frames the line's frames repeat. 0: the line repeats none; it is
  // about one frame, or counts frames of a library.
  std::size_t repeated = 0;
  // Number of times that the line's frames repeat those of the lines above.
  std::size_t times = 0;
  // True if the line shows its only frame in words; false if it counts frames.
  bool has_words() const { return end - first == 1 && repeated == 0; }
};

// Returns the stack's frames that the report has.
StackFrames frames_of(const IndexedReport&, const model::Stack&);

// Returns the frame with its names, as users_frame() takes it. The texts belong to the report.
NamedFrame named(const IndexedReport&, const model::Frame&);

// Returns the frame that a person would name for the call (users_frame()); null if there is none.
const model::Frame* users_frame_of(const IndexedReport&, const StackFrames&);

// Takes out the frames that say nothing about the program: innermost ones of CUDA's libraries,
// since the headline names the call, and outermost ones below the program's first function, such as
// those of libc that call main. If only such frames are there, all stay.
void leave_out_the_known(StackFrames&);

// Returns the lines about the frames, before repeated ones are put together. Two or more
// neighbouring frames of one library are one line. If the style shows full stacks, each frame has a
// line.
std::vector<DrawnLine> lines_of_frames(const StackFrames&, const Style&);

// Finds blocks of one to four neighbouring lines that are repeated, so that they occur three or
// more times in a row. Keeps the first occurrence of each block, and adds a line that stands for
// its repetitions. Returns the first `most_lines` lines of the result. `look_alike`: returns true
// if the lines with the two indices have one text.
std::vector<DrawnLine> without_repetitions(const std::vector<DrawnLine>&, std::size_t most_lines,
                                           FunctionRef<bool(std::size_t, std::size_t)> look_alike);

// Returns the frame in words. Unless the style shows full stacks, the source file has one folder,
// and long names are cut.
FrameWords words_of(const IndexedReport&, const model::Frame&, const Style&);

// Returns a line about the frame, without indentation and line feed. The location is filled with
// spaces to `width` columns if a function follows.
std::string frame_line(const IndexedReport&, const model::Frame&, std::size_t width, const Style&);

// Returns the text of a line that counts frames of a library, or frames that repeat those above.
std::string counting_line(const IndexedReport&, const StackFrames&, const DrawnLine&, const Style&);

// Returns the text about the frame that a person would name for the call: "at cache.cpp:41 in
// Cache::insert".
std::string location_line(const IndexedReport&, const model::Frame&);

// Returns the reason why the outer frames of a truncated stack are missing. The setting
// CUWARDEN_STACK_DEPTH is the reason only if the stack has as many frames as the setting allows.
const char* why_cut(const IndexedReport&, const model::Stack&);

}  // namespace cuwarden
