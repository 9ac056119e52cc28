#include "runtime_hooks/pool/packing.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <iterator>

namespace cuwarden::pool {
namespace {

// The most holes of one bin that are compared. Sizes in a bin differ by a thirty-second at most.
constexpr int most_compared = 16;

constinit std::atomic<std::uint64_t> last_serial{0};

}  // namespace

unsigned Packing::bin_of(std::uint64_t bytes) noexcept {
  const std::uint64_t steps = bytes / step_bytes;
  const unsigned bits = static_cast<unsigned>(std::bit_width(steps));
  if (bits <= sub_bits) return static_cast<unsigned>(steps);
  const unsigned shift = bits - 1 - sub_bits;
  const unsigned sub = static_cast<unsigned>(steps >> shift) & ((1u << sub_bits) - 1);
  return std::min(((shift + 1) << sub_bits) + sub, bins - 1);
}

// Makes sure that `count` unused nodes are there before a change begins. Two more are kept for each
// withheld page: a block given there is cut at both ends of the page.
void Packing::reserve_nodes(std::uint64_t count) {
  while (unused_count_ < count + 2 * withheld_pages_) {
    chunks_.reserve(chunks_.size() + 1);
    chunks_.push_back(std::make_unique<Node[]>(chunk));
    const auto first = static_cast<Index>((chunks_.size() - 1) * chunk);
    // Node 0 is reserved; real nodes start at 1.
    for (std::uint64_t i = chunk; i-- > (first == 0 ? 1 : 0);)
      drop_node(first + static_cast<Index>(i));
  }
}

Packing::Index Packing::new_node() noexcept {
  const Index made = unused_;
  unused_ = node(made).after;
  --unused_count_;
  node(made) = {};
  return made;
}

void Packing::drop_node(Index dropped) noexcept {
  node(dropped) = {.after = unused_};
  unused_ = dropped;
  ++unused_count_;
}

void Packing::link_hole(Index hole) noexcept {
  Node& linked = node(hole);
  const unsigned bin = bin_of(linked.taken_bytes);
  linked.state = State::hole;
  linked.bin_before = 0;
  linked.bin_after = first_in_bin_[bin];
  if (linked.bin_after != 0) node(linked.bin_after).bin_before = hole;
  first_in_bin_[bin] = hole;
  filled_bins_[bin / 64] |= std::uint64_t{1} << bin % 64;
}

void Packing::unlink_hole(Index hole) noexcept {
  const Node& linked = node(hole);
  if (linked.bin_after != 0) node(linked.bin_after).bin_before = linked.bin_before;
  if (linked.bin_before != 0) {
    node(linked.bin_before).bin_after = linked.bin_after;
    return;
  }
  const unsigned bin = bin_of(linked.taken_bytes);
  first_in_bin_[bin] = linked.bin_after;
  if (linked.bin_after == 0) filled_bins_[bin / 64] &= ~(std::uint64_t{1} << bin % 64);
}

Packing::Index Packing::best_in(unsigned bin, std::uint64_t bytes) const noexcept {
  Index best = 0;
  int compared = 0;
  for (Index at = first_in_bin_[bin]; at != 0 && compared < most_compared;
       at = node(at).bin_after, ++compared) {
    const std::uint64_t there = node(at).taken_bytes;
    if (there < bytes || (best != 0 && there >= node(best).taken_bytes)) continue;
    best = at;
    if (there == bytes) break;
  }
  return best;
}

unsigned Packing::next_bin(unsigned from) const noexcept {
  for (unsigned word = from / 64; word < filled_bins_.size(); ++word) {
    const std::uint64_t mask =
        word == from / 64 ? ~std::uint64_t{0} << from % 64 : ~std::uint64_t{0};
    if (const std::uint64_t filled = filled_bins_[word] & mask; filled != 0)
      return word * 64 + static_cast<unsigned>(std::countr_zero(filled));
  }
  return bins;
}

Packing::Index Packing::find_hole(std::uint64_t bytes) const noexcept {
  const unsigned own = bin_of(bytes);
  if (const Index found = best_in(own, bytes); found != 0) return found;
  const unsigned larger = next_bin(own + 1);
  return larger == bins ? 0 : best_in(larger, bytes);
}

Packing::Index Packing::find(std::uint64_t start) const noexcept {
  const auto found = blocks_.find(start);
  return found == blocks_.end() ? 0 : found->second;
}

Block Packing::block(const Node& at) const noexcept {
  return {at.start, at.bytes, at.taken_bytes, at.serial, at.sync_memops};
}

void Packing::add_region(std::uint64_t start, std::uint64_t bytes) {
  reserve_nodes(1);
  const auto [entry, is_new] = regions_.try_emplace(start, 0);
  const Index made = new_node();
  node(made).start = start;
  node(made).taken_bytes = bytes;
  entry->second = made;
  link_hole(made);
}

bool Packing::remove_region(std::uint64_t start) noexcept {
  const auto found = regions_.find(start);
  if (found == regions_.end()) return false;
  const Index first = found->second;
  if (node(first).state != State::hole || node(first).after != 0) return false;
  unlink_hole(first);
  drop_node(first);
  regions_.erase(found);
  return true;
}

std::optional<Block> Packing::take(std::uint64_t bytes) {
  const std::uint64_t wanted = (bytes + step_bytes - 1) / step_bytes * step_bytes;
  if (wanted < bytes || wanted == 0) return std::nullopt;
  reserve_nodes(1);
  const Index taken = find_hole(wanted);
  if (taken == 0) return std::nullopt;
  blocks_.try_emplace(node(taken).start, taken);
  unlink_hole(taken);
  Node& made = node(taken);
  if (made.taken_bytes > wanted) {
    split(taken, made.start + wanted);
    link_hole(made.after);
  }
  made.state = State::live;
  made.bytes = bytes;
  made.serial = last_serial.fetch_add(1, std::memory_order_relaxed) + 1;
  made.sync_memops = false;
  return block(made);
}

std::optional<Block> Packing::retire(std::uint64_t start) noexcept {
  const Index found = find(start);
  if (found == 0 || node(found).state != State::live) return std::nullopt;
  node(found).state = State::retired;
  return block(node(found));
}

void Packing::unretire(std::uint64_t start) noexcept {
  if (const Index found = find(start); found != 0) node(found).state = State::live;
}

bool Packing::has_retired(const Block& block) const noexcept {
  const Index found = find(block.start);
  return found != 0 && node(found).state == State::retired && node(found).serial == block.serial;
}

// Joins the node after `at` to it. That node must be linked in no bin.
void Packing::absorb_after(Index at) noexcept {
  const Index gone = node(at).after;
  node(at).taken_bytes += node(gone).taken_bytes;
  node(at).after = node(gone).after;
  if (node(at).after != 0) node(node(at).after).before = at;
  drop_node(gone);
}

bool Packing::give(std::uint64_t start) noexcept {
  Index given = find(start);
  if (given == 0) return false;
  blocks_.erase(start);
  if (const Index after = node(given).after; is(State::hole, after)) {
    unlink_hole(after);
    absorb_after(given);
  }
  if (const Index before = node(given).before; is(State::hole, before)) {
    unlink_hole(before);
    absorb_after(before);
    given = before;
  }
  link_hole(given);
  return true;
}

// Cuts the node at `address`. The first part stays in its bin; the second part is linked in none.
void Packing::split(Index at, std::uint64_t address) noexcept {
  const Index rest = new_node();
  Node& left = node(rest);
  left.state = node(at).state;
  left.start = address;
  left.taken_bytes = node(at).start + node(at).taken_bytes - address;
  left.before = at;
  left.after = node(at).after;
  if (left.after != 0) node(left.after).before = rest;
  node(at).after = rest;
  node(at).taken_bytes -= left.taken_bytes;
}

// Returns the first node of the region that ends after the address; 0 if there is none.
Packing::Index Packing::first_ending_after(std::uint64_t address) const noexcept {
  const auto region = regions_.upper_bound(address);
  if (region == regions_.begin()) return 0;
  Index at = std::prev(region)->second;
  if (const auto block = blocks_.upper_bound(address);
      block != blocks_.begin() && std::prev(block)->first > node(at).start)
    at = std::prev(block)->second;
  while (at != 0 && node(at).start + node(at).taken_bytes <= address) at = node(at).after;
  return at;
}

void Packing::announce_withheld(std::uint64_t pages) {
  withheld_pages_ += pages;
  try {
    reserve_nodes(0);
  } catch (...) {
    withheld_pages_ -= pages;
    throw;
  }
}

void Packing::withhold(std::uint64_t start, std::uint64_t bytes) noexcept {
  const std::uint64_t end = start + bytes;
  for (Index at = first_ending_after(start); at != 0 && node(at).start < end; at = node(at).after) {
    if (!is(State::hole, at)) continue;
    unlink_hole(at);
    if (node(at).start < start) {
      split(at, start);
      link_hole(at);
      at = node(at).after;
    }
    if (node(at).start + node(at).taken_bytes > end) {
      split(at, end);
      link_hole(node(at).after);
    }
    node(at).state = State::withheld;
    if (is(State::withheld, node(at).after) && node(node(at).after).start < end) absorb_after(at);
    if (const Index before = node(at).before;
        is(State::withheld, before) && node(before).start >= start) {
      absorb_after(before);
      at = before;
    }
  }
}

void Packing::release(std::uint64_t start, std::uint64_t bytes) noexcept {
  const std::uint64_t end = start + bytes;
  --withheld_pages_;
  for (Index at = first_ending_after(start); at != 0 && node(at).start < end; at = node(at).after) {
    if (!is(State::withheld, at)) continue;
    if (const Index after = node(at).after; is(State::hole, after)) {
      unlink_hole(after);
      absorb_after(at);
    }
    if (const Index before = node(at).before; is(State::hole, before)) {
      unlink_hole(before);
      absorb_after(before);
      at = before;
    }
    link_hole(at);
  }
}

std::optional<Block> Packing::block_at(std::uint64_t start) const noexcept {
  const Index found = find(start);
  return found != 0 && node(found).state == State::live ? std::optional(block(node(found)))
                                                        : std::nullopt;
}

std::optional<Block> Packing::block_around(std::uint64_t address) const noexcept {
  const auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return std::nullopt;
  const Node& found = node(std::prev(after)->second);
  return found.state == State::live && address - found.start < found.bytes
             ? std::optional(block(found))
             : std::nullopt;
}

void Packing::set_sync_memops(std::uint64_t start, bool on) noexcept {
  if (const Index found = find(start); found != 0) node(found).sync_memops = on;
}

}  // namespace cuwarden::pool
