// Modules are looked up before the table's lock is taken, because that calls the dynamic loader.
// The module table's lock is taken under the table's lock.
#include "runtime_hooks/ledger/write/stacks/stack_table.hpp"

#include <algorithm>
#include <cstring>

#include "runtime_hooks/core/hash.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"

namespace cuwarden::ledger {

bool StackTable::has_addresses(std::uint32_t row, std::span<const Frame> frames) const noexcept {
  const Stack& stack = storage_.rows<Stack>(RegionId::stacks)[row];
  const Frame* const all = storage_.rows<Frame>(RegionId::frames);
  return frames.empty() || std::memcmp(all + stack.first, frames.data(), frames.size_bytes()) == 0;
}

std::uint32_t StackTable::find(std::uint64_t hash, std::span<const Frame> frames,
                               bool truncated) const noexcept {
  const Stack* const stacks = storage_.rows<Stack>(RegionId::stacks);
  return ids_.find(hash, [&](std::uint32_t row) {
    const Stack& stack = stacks[row];
    return stack.hash == hash && stack.count == frames.size() &&
           stack.truncated == std::uint32_t{truncated} && has_addresses(row, frames);
  });
}

std::uint32_t StackTable::find_by_locations(std::uint64_t hash_of_locations,
                                            std::span<const Frame> frames,
                                            bool truncated) noexcept {
  const Stack* const stacks = storage_.rows<Stack>(RegionId::stacks);
  const Frame* const all = storage_.rows<Frame>(RegionId::frames);
  return ids_by_locations_.find(hash_of_locations, [&](std::uint32_t row) {
    const Stack& stack = stacks[row];
    return stack.count == frames.size() && stack.truncated == std::uint32_t{truncated} &&
           modules_.are_same_locations(frames, all + stack.first, stack.module_epoch);
  });
}

// The caller holds the lock. A stack whose modules were loaded again elsewhere is from now on found
// by its new addresses.
std::uint32_t StackTable::find_again(std::uint64_t hash, std::span<const Frame> frames,
                                     bool truncated, std::uint64_t hash_of_locations) noexcept {
  if (const std::uint32_t row = find(hash, frames, truncated)) return row;
  const std::uint32_t row = find_by_locations(hash_of_locations, frames, truncated);
  if (row == 0) return 0;
  if (has_addresses(row, frames)) {
    ids_.insert(hash, row);
  } else {
    moved_.insert(hash, frames, truncated, row);
  }
  return row;
}

// The caller holds the lock.
std::uint32_t StackTable::add(std::uint64_t hash, std::span<const Frame> frames, bool truncated,
                              std::uint64_t hash_of_locations) noexcept {
  const std::uint64_t first =
      frames.empty() ? 0 : storage_.allocate(RegionId::frames, frames.size());
  const bool no_frames = first == 0 && !frames.empty();
  const auto row =
      no_frames ? 0 : static_cast<std::uint32_t>(storage_.allocate(RegionId::stacks, 1));
  if (row == 0) {
    storage_.add_reason(reason_ledger_full);
    return 0;
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
  ids_.insert(hash, row);
  ids_by_locations_.insert(hash_of_locations, row);
  return row;
}

StackId StackTable::intern(std::span<const Frame> frames, bool truncated, bool* added) noexcept {
  if (added != nullptr) *added = false;
  const std::uint64_t hash = hash_words(frames) + (truncated ? hash_salt[0] : 0);
  if (const std::uint32_t row = find(hash, frames, truncated)) return StackId{row};
  if (const std::uint32_t row = moved_.find(hash, frames, truncated)) return StackId{row};

  modules_.cover(frames);
  const std::uint64_t hash_of_locations = modules_.hash_of_locations(frames);
  {
    const LedgerLocked locked(ids_.lock(), storage_);
    if (!locked) return {};
    if (const std::uint32_t row = find_again(hash, frames, truncated, hash_of_locations))
      return StackId{row};
  }
  modules_.store_rows(frames);
  const LedgerLocked locked(ids_.lock(), storage_);
  if (!locked) return {};
  // Another thread may have stored the stack meanwhile.
  if (const std::uint32_t row = find_again(hash, frames, truncated, hash_of_locations))
    return StackId{row};
  const std::uint32_t row = add(hash, frames, truncated, hash_of_locations);
  if (added != nullptr) *added = row != 0;
  return StackId{row};
}

void StackTable::modules_changed() noexcept {
  modules_.remove_gone([this](ModuleTable::Gone range) { retire(range); });
}

void StackTable::retire(ModuleTable::Gone range) noexcept {
  const LedgerLocked locked(ids_.lock(), storage_);
  if (!locked) return;
  moved_.retire(range.start, range.end);
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
