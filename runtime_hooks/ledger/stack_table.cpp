// Modules are looked up before the lock is taken: that calls the dynamic loader.
#include "runtime_hooks/ledger/stack_table.hpp"

#include <algorithm>
#include <cstring>

#include "runtime_hooks/core/hash.hpp"

namespace cuwarden::ledger {

std::uint32_t StackTable::find(std::uint64_t hash, std::span<const Frame> frames,
                               bool truncated) const noexcept {
  const Stack* const stacks = storage_.rows<Stack>(RegionId::stacks);
  const Frame* const all = storage_.rows<Frame>(RegionId::frames);
  return ids_.find(hash, [&](std::uint32_t row) {
    const Stack& stack = stacks[row];
    return stack.hash == hash && stack.count == frames.size() &&
           stack.truncated == std::uint32_t{truncated} &&
           (frames.empty() ||
            std::memcmp(all + stack.first, frames.data(), frames.size_bytes()) == 0);
  });
}

StackId StackTable::intern(std::span<const Frame> frames, bool truncated, bool& added) noexcept {
  const std::uint64_t hash = hash_words(frames) + (truncated ? hash_salt[0] : 0);
  if (const std::uint32_t row = find(hash, frames, truncated)) return StackId{row};

  modules_.cover(frames);
  const LedgerLocked locked(ids_.lock(), storage_);
  if (!locked) return {};
  if (const std::uint32_t row = find(hash, frames, truncated)) return StackId{row};
  const std::uint64_t first =
      frames.empty() ? 0 : storage_.allocate(RegionId::frames, frames.size());
  const bool no_frames = first == 0 && !frames.empty();
  const std::uint64_t row = no_frames ? 0 : storage_.allocate(RegionId::stacks, 1);
  if (row == 0) {
    storage_.add_reason(reason_ledger_full);
    return {};
  }
  if (!frames.empty()) {
    std::memcpy(storage_.rows<Frame>(RegionId::frames) + first, frames.data(), frames.size_bytes());
  }
  Stack& stack = storage_.rows<Stack>(RegionId::stacks)[row];
  stack.count = static_cast<std::uint32_t>(frames.size());
  stack.first = first;
  stack.hash = hash;
  stack.module_epoch = storage_.header().module_epoch.load(std::memory_order_acquire);
  stack.truncated = truncated ? 1 : 0;
  stack.state.store(1, std::memory_order_release);
  ids_.insert(hash, static_cast<std::uint32_t>(row));
  added = true;
  return StackId{static_cast<std::uint32_t>(row)};
}

void StackTable::retire(ModuleTable::Gone range) noexcept {
  const LedgerLocked locked(ids_.lock(), storage_);
  if (!locked) return;
  const Stack* const stacks = storage_.rows<Stack>(RegionId::stacks);
  const Frame* const all = storage_.rows<Frame>(RegionId::frames);
  const std::uint64_t used = storage_.used(RegionId::stacks);
  for (std::uint64_t row = 1; row < used; ++row) {
    const Stack& stack = stacks[row];
    const bool inside =
        std::any_of(all + stack.first, all + stack.first + stack.count,
                    [&](Frame frame) { return frame >= range.start && frame < range.end; });
    if (inside) ids_.retire(stack.hash, static_cast<std::uint32_t>(row));
  }
}

}  // namespace cuwarden::ledger
