#include "reporters/text/elements/process_ending.hpp"

#include <cstdint>

#include "reporters/text/elements/text_elements.hpp"
#include "reporters/words/signal_name.hpp"

namespace cuwarden {

std::string process_ending(const model::Text& end_reason, const model::SignedFigure& exit_status,
                           const model::Figure& signal_or_null) {
  const std::string reason = text_or(end_reason, "");
  const std::uint64_t signal = signal_or_null.value_or(0);
  std::string status;
  if (exit_status) status = " with status " + std::to_string(*exit_status);
  if (reason == "exit") return "exited" + status;
  if (reason == "_exit" || reason == "quick_exit") return "ended by " + reason + status;
  if (reason == "abort") return "aborted";
  if (reason == "signal") {
    return signal == 0 ? "killed by a signal"
                       : "killed by signal " + numbered_signal(static_cast<int>(signal));
  }
  if (reason == "running") return "was still running";
  return "ended in a way that was not seen";
}

}  // namespace cuwarden
