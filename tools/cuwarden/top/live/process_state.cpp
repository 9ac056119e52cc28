#include "tools/cuwarden/top/live/process_state.hpp"

#include <algorithm>

#include "reporters/words/quantities.hpp"
#include "tools/cuwarden/top/top_figures.hpp"

namespace cuwarden {

std::string state_text(const LiveProcess& process) {
  if (process.row.ended) return "ended";
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (!process.waiting.empty()) {
    const auto longest = std::ranges::max_element(process.waiting, {}, &WaitingRow::duration_ns);
    add("waits " + human_time(longest->duration_ns.value_or(0)) + " (" + longest->rung + ")");
  }
  if (process.row.failures.value_or(0) != 0) add("refused " + count_text(process.row.failures));
  if (process.row.rescues.value_or(0) != 0) add("rescued " + count_text(process.row.rescues));
  return text;
}

}  // namespace cuwarden
