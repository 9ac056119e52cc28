#include <algorithm>
#include <string>

#include "reporters/text/elements/text_elements.hpp"
#include "reporters/words/printable.hpp"
#include "tools/cuwarden/top/live/live_pages.hpp"
#include "tools/cuwarden/top/top_figures.hpp"

namespace cuwarden {
namespace {

// Returns the frame in one line; without its folder if the line would be too long.
std::string frame_line(const StackLine& frame, std::size_t columns) {
  const std::string mark = frame.is_users ? "→ " : "  ";
  const std::string library = frame.library.empty() ? "" : "  (" + frame.library + ")";
  std::string whole = mark + frame.location + library;
  return cut(whole, columns) == whole ? whole : mark + frame.short_location + library;
}

}  // namespace

void add_stack_page(LiveState& state, const LiveData& data, const LiveScreen& screen,
                    ScreenLines& lines) {
  if (const LiveProcess* const process = open_process(state, data))
    lines.add(program_text(process->row) + " (pid " + std::to_string(process->row.pid) + ")" +
                  (process->row.ended ? " has ended" : ""),
              bold_colour);
  const auto stack = std::ranges::find(data.stacks, state.stack, &LiveStack::group);
  if (stack != data.stacks.end()) {
    const StackRow& row = stack->row;
    lines.add(row.api.value_or("") + ", " + memory_name(row.kind, row.device) + ": " +
              bytes_text(row.live_bytes) + " live in " + count_text(row.live_count) + ", growth " +
              growth_text(row.growth_bytes_per_minute) + ", " + count_text(row.allocations) +
              (row.allocations == 1u ? " allocation" : " allocations") + " since the start, " +
              rate_text(row.allocations_per_minute) + " per second");
    if (row.keeps_growing) lines.add(growing_mark(row), bold_colour);
  } else {
    lines.add("Nothing of this call stack is live any more.");
  }
  if (!data.whole_stack) {
    lines.add("The names of the frames are being looked up.", dim_colour);
    state.most_scroll = 0;
    return;
  }
  if (data.whole_stack->empty()) lines.add("No stack was recorded.", dim_colour);
  ColouredLines frames;
  for (const StackLine& frame : *data.whole_stack)
    frames.emplace_back(frame_line(frame, screen.columns), frame.is_users ? bold_colour
                                                           : frame.library.empty()
                                                               ? std::string_view()
                                                               : dim_colour);
  add_scrolled(frames, state, screen, lines);
}

}  // namespace cuwarden
