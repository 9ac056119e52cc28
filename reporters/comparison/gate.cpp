#include "reporters/comparison/gate.hpp"

#include <algorithm>
#include <cstddef>

#include "reporters/words/quantities.hpp"

namespace cuwarden {
namespace {

std::string number_of_leaks(std::size_t count) {
  return count == 0 ? "no leaks" : human_count(count) + (count == 1 ? " leak" : " leaks");
}

// Returns the leak with the most bytes; null if there is none.
const FingerprintedLeak* largest(const LeaksByFingerprint& leaks) {
  const auto found = std::ranges::max_element(
      leaks, {}, [](const auto& leak) { return std::pair(leak.second.bytes, leak.second.count); });
  return found == leaks.end() ? nullptr : &found->second;
}

}  // namespace

GateOutcome judge(const Gate& gate, const LeaksByFingerprint& now, const Difference& difference,
                  const std::optional<std::string>& doubt) {
  std::string line = number_of_leaks(now.size());
  // The leak that fails the check; the line names it.
  const FingerprintedLeak* culprit = nullptr;
  if (gate.on_leak) culprit = largest(now);
  const auto count = [&](bool is_asked, const std::vector<ChangedLeak>& leaks, const char* word) {
    if (!is_asked) return;
    line += ", " + (leaks.empty() ? std::string("none") : human_count(leaks.size())) + " " + word;
    if (!leaks.empty()) culprit = leaks.front().now;
  };
  // Growth is told even if it does not fail the check, because a second leak in a known function is
  // growth.
  if (!gate.on_growth && gate.on_new && !difference.grown.empty())
    line += ", " + human_count(difference.grown.size()) + " grown";
  count(gate.on_growth, difference.grown, "grown");
  count(gate.on_new, difference.added, "new");
  if (culprit != nullptr)
    return {true, false, "FAIL: " + line + (culprit->where.empty() ? "" : ": " + culprit->where)};
  if (doubt) return {true, true, "FAIL: " + line + ", but leaks may be missing: " + *doubt};
  return {false, false, "OK: " + line};
}

}  // namespace cuwarden
