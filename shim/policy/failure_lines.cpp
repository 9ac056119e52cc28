#include "shim/policy/failure_lines.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "reporters/words/quantities.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "shim/support/log.hpp"

namespace cuwarden::shim {
namespace {

// Copies the text into the array, as much as there is room for.
template <std::size_t size>
void copy(std::string_view text, char (&to)[size]) noexcept {
  const std::size_t length = std::min(text.size(), size - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

// Returns a line such as "cudaMalloc of 10.7 GiB (GPU 0) failed: 13.8 GiB … (slab_fragmentation);
// report: /tmp/app.json".
std::string line_about(const rescue::Request& request, const FailureWords& words) {
  std::string line(words.api.empty() ? "a request" : words.api);
  // A launch does not ask for memory itself.
  if (request.bytes != 0)
    line += (request.asked == ledger::Asked::launch ? " needing " : " of ") +
            human_bytes(request.bytes);
  if (request.device != no_device) line += " (GPU " + std::to_string(request.device.value) + ")";
  line += " failed: " + std::string(words.cause);
  if (!words.report.empty()) line += "; report: " + std::string(words.report);
  return line;
}

}  // namespace

void FailureLines::reset() noexcept {
  told_.store(0, std::memory_order_relaxed);
  for (Kept& kept : kept_) {
    // A thread of a forked child's parent that used the words is not in the child.
    kept.is_in_use.clear();
    kept.incident.store(0, std::memory_order_relaxed);
  }
}

void FailureLines::write_once(std::uint32_t verdict, std::string_view line) noexcept {
  const std::uint32_t bit = 1u << verdict;
  if ((told_.fetch_or(bit, std::memory_order_relaxed) & bit) == 0) log_warn(line);
}

void FailureLines::tell(const rescue::Incident& incident, const FailureWords& words) {
  if (has_told(words.verdict)) return;
  write_once(words.verdict, line_about(incident.request, words));
}

void FailureLines::keep(const rescue::Incident& incident, const FailureWords& words,
                        std::uint64_t now_ns) noexcept {
  if (has_told(words.verdict)) return;
  Kept& kept = kept_[next_.fetch_add(1, std::memory_order_relaxed) % std::size(kept_)];
  // Another thread's words are as good.
  if (kept.is_in_use.test_and_set(std::memory_order_acquire)) return;
  kept.verdict = words.verdict;
  kept.request = incident.request;
  kept.time_ns = now_ns;
  copy(words.api, kept.api);
  copy(words.cause, kept.cause);
  // A part of a path would lead nowhere.
  copy(words.report.size() < sizeof kept.report ? words.report : std::string_view(), kept.report);
  kept.incident.store(incident.id.value, std::memory_order_relaxed);
  kept.is_in_use.clear(std::memory_order_release);
}

void FailureLines::forget(const rescue::Incident& repeated) noexcept {
  for (Kept& kept : kept_) {
    if (kept.incident.load(std::memory_order_relaxed) == 0 ||
        kept.is_in_use.test_and_set(std::memory_order_acquire))
      continue;
    if (kept.request == repeated.request) kept.incident.store(0, std::memory_order_relaxed);
    kept.is_in_use.clear(std::memory_order_release);
  }
}

void FailureLines::failed_again(const rescue::Incident& failed, IncidentId counted,
                                std::uint64_t now_ns) noexcept {
  constexpr std::uint64_t recent_ns = 10'000'000'000;
  for (Kept& kept : kept_) {
    if (kept.incident.load(std::memory_order_relaxed) != counted.value) continue;
    const Uncancelled whole;
    if (kept.is_in_use.test_and_set(std::memory_order_acquire)) continue;
    if (kept.incident.exchange(0, std::memory_order_relaxed) == counted.value) try {
        std::string cause = kept.cause;
        if (now_ns - kept.time_ns > recent_ns) cause += " when it was first refused";
        write_once(kept.verdict,
                   line_about(failed.request, {kept.verdict, kept.api, cause, kept.report}));
      } catch (...) {
        // Without memory there is no line.
      }
    kept.is_in_use.clear(std::memory_order_release);
  }
}

void FailureLines::end(const ledger::Reader& reader) noexcept {
  for (Kept& kept : kept_) {
    const std::uint32_t id = kept.incident.load(std::memory_order_relaxed);
    if (id == 0 || kept.is_in_use.test_and_set(std::memory_order_acquire)) continue;
    const auto incident = reader.incident(id);
    if (incident && incident->failed > incident->recovered &&
        kept.incident.exchange(0, std::memory_order_relaxed) == id)
      try {
        write_once(kept.verdict,
                   line_about(kept.request, {kept.verdict, kept.api, kept.cause, kept.report}));
      } catch (...) {
        // Without memory there is no line.
      }
    kept.is_in_use.clear(std::memory_order_release);
  }
}

}  // namespace cuwarden::shim
