// Both tables consist of chains of rows, one chain for each bucket. Rows are numbered from 1, so
// that 0 ends a chain and a table of zeros is an empty one.
#include "runtime_hooks/hooks/graphs/node_tables.hpp"

#include <iterator>

namespace cuwarden::hooks {

void NodeMakers::unlink(Node& node) noexcept {
  const auto row = static_cast<std::uint16_t>(&node - nodes_ + 1);
  std::uint16_t* link = &first_[bucket_of(node.address)];
  while (*link != 0 && *link != row) link = &nodes_[*link - 1].next;
  if (*link == row) *link = node.next;
}

void NodeMakers::made(std::uint64_t address, std::uint64_t bytes, GroupId group) noexcept {
  const Locked locked(lock_);
  if (!locked) return left_.store(true, std::memory_order_relaxed);
  std::uint16_t& first = first_[bucket_of(address)];
  std::size_t known = 0;
  Node* earliest = nullptr;
  for (std::uint16_t row = first; row != 0; row = nodes_[row - 1].next) {
    if (nodes_[row - 1].address != address) continue;
    earliest = &nodes_[row - 1];
    ++known;
  }
  Node* node = earliest;
  if (known < most_of_one_address) {
    node = &nodes_[oldest_];
    oldest_ = (oldest_ + 1) % limit;
  }
  if (node->address != 0) unlink(*node);
  *node = {address, {group, bytes, ++made_}, first};
  first = static_cast<std::uint16_t>(node - nodes_ + 1);
}

std::size_t NodeMakers::makers_of(std::uint64_t address,
                                  Maker (&to)[most_of_one_address]) noexcept {
  const Locked locked(lock_);
  if (!locked) {
    left_.store(true, std::memory_order_relaxed);
    return 0;
  }
  std::size_t count = 0;
  for (std::uint16_t row = first_[bucket_of(address)]; row != 0; row = nodes_[row - 1].next)
    if (nodes_[row - 1].address == address && count < most_of_one_address)
      to[count++] = nodes_[row - 1].maker;
  return count;
}

bool ExecEffects::add(const Effect& effect) noexcept {
  const Locked locked(lock_);
  if (!locked) {
    left_.store(true, std::memory_order_relaxed);
    return false;
  }
  std::uint16_t row = free_;
  if (row != 0)
    free_ = rows_[row - 1].next;
  else if (used_ < limit)
    row = ++used_;
  else
    return false;
  auto& first = first_[bucket_of(effect.exec)];
  rows_[row - 1] = {effect, first.load(std::memory_order_relaxed)};
  first.store(row, std::memory_order_release);
  return true;
}

void ExecEffects::forget(std::uint64_t exec) noexcept {
  if (!any(exec)) return;
  const Locked locked(lock_);
  if (!locked) return left_.store(true, std::memory_order_relaxed);
  auto& first = first_[bucket_of(exec)];
  std::uint16_t kept = 0, last_kept = 0;
  for (std::uint16_t row = first.load(std::memory_order_relaxed), next = 0; row != 0; row = next) {
    Row& here = rows_[row - 1];
    next = here.next;
    if (here.effect.exec == exec) {
      here = {{}, free_};
      free_ = row;
      continue;
    }
    if (last_kept == 0)
      kept = row;
    else
      rows_[last_kept - 1].next = row;
    last_kept = row;
    here.next = 0;
  }
  first.store(kept, std::memory_order_release);
}

std::size_t ExecEffects::copy(std::uint64_t exec, bool allocates, std::uint16_t& at,
                              Effect (&to)[32]) noexcept {
  const Locked locked(lock_);
  if (!locked) {
    left_.store(true, std::memory_order_relaxed);
    at = 0;
    return 0;
  }
  // The row at `at` belongs to another graph by now: this one was destroyed during its launch.
  if (at != 0 && rows_[at - 1].effect.exec != exec) {
    at = 0;
    return 0;
  }
  std::uint16_t row =
      at != 0 ? rows_[at - 1].next : first_[bucket_of(exec)].load(std::memory_order_relaxed);
  std::size_t count = 0;
  for (; row != 0; row = rows_[row - 1].next) {
    const Effect& effect = rows_[row - 1].effect;
    if (effect.exec != exec || effect.allocates != allocates) continue;
    to[count++] = effect;
    at = row;
    if (count == std::size(to)) return count;
  }
  at = 0;
  return count;
}

}  // namespace cuwarden::hooks
