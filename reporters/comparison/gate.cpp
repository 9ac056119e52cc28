#include "reporters/comparison/gate.hpp"

#include <algorithm>
#include <cstddef>

#include "reporters/text/elements/text_elements.hpp"
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

// Returns the leak with the most lost bytes, and adds words about lost and unknown memory to the
// line; null if nothing is lost.
const FingerprintedLeak* largest_lost(const LeaksByFingerprint& leaks, std::string& line) {
  const FingerprintedLeak* found = nullptr;
  std::size_t lost = 0;
  std::uint64_t unknown_count = 0, unknown_bytes = 0;
  for (const auto& [fingerprint, leak] : leaks) {
    unknown_count += leak.unknown_count;
    unknown_bytes += leak.unknown_bytes;
    if (leak.lost_count == 0) continue;
    ++lost;
    if (found == nullptr || leak.lost_bytes > found->lost_bytes) found = &leak;
  }
  if (!leaks.empty())
    line += ", " + (lost == 0 ? std::string("none") : human_count(lost)) + " lost";
  if (unknown_count != 0)
    line +=
        " (not known of " + human_bytes(unknown_bytes) + " in " + allocations(unknown_count) + ")";
  return found;
}

// Returns the line of the program's code that leaks, and the named step (such as a test) with most
// of the leak's bytes; empty: both are unknown.
std::string location_of(const FingerprintedLeak& leak) {
  std::string location = leak.where;
  if (!leak.named_steps.empty() && leak.named_steps.front().bytes.value_or(0) >= leak.bytes / 2) {
    location += location.empty() ? "in " : ", in ";
    location += name_of_step(leak.named_steps.front());
    if (const std::size_t steps = leak.named_steps.size(); steps > 1)
      location += " and " + human_count(steps - 1) + " more";
  }
  return location.empty() ? "" : ": " + location;
}

}  // namespace

GateOutcome judge(const Gate& gate, const LeaksByFingerprint& now, const Difference& difference,
                  const std::optional<std::string>& doubt) {
  std::string line = number_of_leaks(now.size());
  // The leak that fails the check; the line names it.
  const FingerprintedLeak* culprit = nullptr;
  if (gate.on_leak == FailingLeaks::all) culprit = largest(now);
  if (gate.on_leak == FailingLeaks::lost) culprit = largest_lost(now, line);
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
    return {.failed = true, .by_doubt = false, .line = "FAIL: " + line + location_of(*culprit)};
  if (doubt)
    return {.failed = true,
            .by_doubt = true,
            .line = "FAIL: " + line + ", but leaks may be missing: " + *doubt};
  return {.failed = false, .by_doubt = false, .line = "OK: " + line};
}

}  // namespace cuwarden
