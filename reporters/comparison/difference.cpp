#include "reporters/comparison/difference.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <utility>

#include "reporters/words/quantities.hpp"

namespace cuwarden {
namespace {

std::uint64_t distance(std::uint64_t one, std::uint64_t other) {
  return one > other ? one - other : other - one;
}

// Returns the bytes and the allocations by which the figures changed.
std::pair<std::uint64_t, std::uint64_t> size_of(const ChangedLeak& changed) {
  static const FingerprintedLeak none;
  const FingerprintedLeak& before = changed.before == nullptr ? none : *changed.before;
  const FingerprintedLeak& now = changed.now == nullptr ? none : *changed.now;
  return {distance(now.bytes, before.bytes), distance(now.count, before.count)};
}

void sort_by_size(std::vector<ChangedLeak>& leaks) {
  std::ranges::stable_sort(leaks, std::greater(), size_of);
}

std::string figures(const FingerprintedLeak& leak) {
  return human_bytes(leak.bytes) + " in " + counted(leak.count, leak.kind);
}

void add_leaks(const char* title, const std::vector<ChangedLeak>& leaks, std::size_t top,
               const Style& style, std::string& text) {
  if (leaks.empty()) return;
  text += "\n" + style.bold(title) + "\n";
  const std::size_t shown = top == 0 ? leaks.size() : std::min(top, leaks.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& [fingerprint, before, now] = leaks[i];
    const FingerprintedLeak& leak = now == nullptr ? *before : *now;
    std::string line = style.bold(figures(leak));
    if (before != nullptr && now != nullptr) line += ", before " + figures(*before);
    if (!leak.kind.empty()) line += " · " + memory_name(leak.kind, std::nullopt);
    if (!leak.api.empty()) line += " · " + leak.api;
    text += padded(std::to_string(i + 1) + ".", 3, true) + " " + line + " · " + *fingerprint + "\n";
    if (!leak.stack.empty()) {
      text += leak.stack;
    } else if (!leak.where.empty()) {
      text += "       " + leak.where + "\n";
    }
  }
  if (shown < leaks.size())
    text += style.dim("  … " + std::to_string(leaks.size() - shown) + " more; --top 0 shows all") +
            "\n";
}

std::string sums(const LeaksByFingerprint& leaks) {
  FingerprintedLeak sum;
  for (const auto& [fingerprint, leak] : leaks) {
    sum.bytes += leak.bytes;
    sum.count += leak.count;
  }
  if (sum.count == 0) return "nothing";
  return human_bytes(sum.bytes) + " in " + allocations(sum.count);
}

// Returns the parts that are not 0: "2 new, 1 unchanged".
std::string parts(std::initializer_list<std::pair<std::size_t, const char*>> numbers) {
  std::string text;
  for (const auto& [number, words] : numbers)
    if (number != 0) text += (text.empty() ? "" : ", ") + human_count(number) + " " + words;
  return text;
}

}  // namespace

Difference difference_of(const LeaksByFingerprint& before, const LeaksByFingerprint& now,
                         const std::set<std::string>& suppressed) {
  Difference difference;
  for (const auto& [fingerprint, leak] : now) {
    const auto known = before.find(fingerprint);
    if (known == before.end()) {
      difference.added.push_back({&fingerprint, nullptr, &leak});
      continue;
    }
    const FingerprintedLeak& old = known->second;
    if (leak.bytes == old.bytes && leak.count == old.count)
      ++difference.unchanged;
    else
      (leak.bytes > old.bytes || leak.count > old.count ? difference.grown : difference.shrunk)
          .push_back({&fingerprint, &old, &leak});
  }
  for (const auto& [fingerprint, leak] : before) {
    if (now.contains(fingerprint)) continue;
    if (suppressed.contains(fingerprint))
      ++difference.suppressed;
    else
      difference.gone.push_back({&fingerprint, &leak, nullptr});
  }
  for (auto* leaks : {&difference.added, &difference.grown, &difference.shrunk, &difference.gone})
    sort_by_size(*leaks);
  return difference;
}

std::string difference_text(const std::string& with, const LeaksByFingerprint& before,
                            const LeaksByFingerprint& now, const Difference& difference,
                            std::size_t top, const Style& style) {
  std::string text = style.bold("COMPARED WITH " + printable(with)) + ": " +
                     (now.empty() ? "no leaks" : sums(now) + " not freed") + ", before " +
                     sums(before) + "\n";
  const std::string kinds = parts({{difference.added.size(), "new"},
                                   {difference.grown.size(), "grown"},
                                   {difference.shrunk.size(), "smaller"},
                                   {difference.unchanged, "unchanged"},
                                   {difference.suppressed, "suppressed now"},
                                   {difference.gone.size(), "gone"}});
  if (!kinds.empty()) text += "  leaks: " + kinds + "\n";
  add_leaks("NEW", difference.added, top, style, text);
  add_leaks("GROWN", difference.grown, top, style, text);
  add_leaks("SMALLER", difference.shrunk, top, style, text);
  add_leaks("GONE", difference.gone, top, style, text);
  return text;
}

}  // namespace cuwarden
