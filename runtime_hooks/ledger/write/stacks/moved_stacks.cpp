#include "runtime_hooks/ledger/write/stacks/moved_stacks.hpp"

#include <algorithm>

#include "runtime_hooks/core/atomic_field.hpp"

namespace cuwarden::ledger {

std::uint32_t MovedStacks::find(std::uint64_t hash, std::span<const Frame> frames,
                                bool truncated) const noexcept {
  const Entry* const all = entries();
  if (all == nullptr) return 0;
  const Entry& entry = all[hash % entry_count];
  const std::uint32_t version = entry.version.load(std::memory_order_acquire);
  const std::uint32_t row = entry.row.load(relaxed);
  if (version % 2 != 0 || row == 0 || entry.hash.load(relaxed) != hash ||
      entry.count.load(relaxed) != frames.size() ||
      entry.truncated.load(relaxed) != std::uint32_t{truncated}) {
    return 0;
  }
  for (std::size_t i = 0; i < frames.size() && i < most_frames; ++i)
    if (entry.frames[i].load(relaxed) != frames[i]) return 0;
  std::atomic_thread_fence(std::memory_order_acquire);
  return entry.version.load(relaxed) == version ? row : 0;
}

void MovedStacks::insert(std::uint64_t hash, std::span<const Frame> frames, bool truncated,
                         std::uint32_t row) noexcept {
  if (frames.size() > most_frames) return;
  Entry* all = entries();
  if (all == nullptr) {
    Mapping memory = Mapping::anonymous(entry_count * sizeof(Entry));
    if (!memory) return;
    all = static_cast<Entry*>(memory.release());
    entries_.store(all, std::memory_order_release);
  }
  Entry& entry = all[hash % entry_count];
  const std::uint32_t version = entry.version.load(relaxed) | 1;
  entry.version.store(version, relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  entry.row.store(row, relaxed);
  entry.hash.store(hash, relaxed);
  entry.count.store(static_cast<std::uint32_t>(frames.size()), relaxed);
  entry.truncated.store(truncated ? 1 : 0, relaxed);
  for (std::size_t i = 0; i < frames.size(); ++i) entry.frames[i].store(frames[i], relaxed);
  entry.version.store(version + 1, std::memory_order_release);
}

void MovedStacks::retire(std::uint64_t start, std::uint64_t end) noexcept {
  Entry* const all = entries();
  if (all == nullptr) return;
  for (Entry& entry : std::span(all, entry_count)) {
    if (entry.row.load(relaxed) == 0) continue;
    const std::size_t count = entry.count.load(relaxed);
    const bool inside = std::any_of(entry.frames, entry.frames + count, [&](const auto& frame) {
      return frame.load(relaxed) >= start && frame.load(relaxed) < end;
    });
    if (!inside) continue;
    const std::uint32_t version = entry.version.load(relaxed) | 1;
    entry.version.store(version, relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    entry.row.store(0, relaxed);
    entry.version.store(version + 1, std::memory_order_release);
  }
}

}  // namespace cuwarden::ledger
