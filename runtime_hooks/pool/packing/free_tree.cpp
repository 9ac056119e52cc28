// The tree is a treap: ordered by addresses, and a heap by the hashes of the nodes' numbers.
#include "runtime_hooks/pool/packing/free_tree.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime_hooks/pool/packing/pages.hpp"

namespace cuwarden::pool {
namespace {

// A hash of the node's number, different for each. Nodes with numbers in order must not get heights
// in order, or the tree becomes a list.
std::uint32_t height(StretchIndex at) {
  at = (at ^ at >> 16) * 0x7feb'352du;
  at = (at ^ at >> 15) * 0x846c'a68bu;
  return at ^ at >> 16;
}

std::uint32_t in_steps(std::uint64_t bytes) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes / step_bytes, UINT32_MAX));
}

// The bytes of a stretch before its first page boundary, in the wholly free pages after that, and
// behind them. The bytes of a stretch without a page boundary in it or at its start are `first`.
struct Cut {
  std::uint64_t first = 0, free = 0, last = 0;

  explicit Cut(const Stretch& at) {
    const std::uint64_t end = at.start + at.taken_bytes, begun = up_to_page(at.start),
                        ended = down_to_page(end);
    if (begun > ended) {
      first = at.taken_bytes;
      return;
    }
    first = begun - at.start;
    free = ended - begun;
    last = end - ended;
  }

  std::uint64_t largest(const Stretch& at, Room room) const {
    switch (room) {
      case Room::whole:
        return at.taken_bytes;
      case Room::free_pages:
        return free;
      case Room::used_pages:
        if (free == 0) return at.taken_bytes;
        break;
      case Room::one_used_page:
        break;
    }
    return std::max(first, last);
  }
};

// Returns the stretch's smallest part of the kind that has at least `bytes`. There must be one.
FreePart part_of(const Stretch& at, StretchIndex index, Room room, std::uint64_t bytes) {
  const Cut cut(at);
  if (room == Room::whole || (room == Room::used_pages && cut.free == 0))
    return {index, at.start, at.taken_bytes};
  if (room == Room::free_pages) return {index, at.start + cut.first, cut.free};
  if (cut.first >= bytes && (cut.last < bytes || cut.first <= cut.last))
    return {index, at.start, cut.first};
  return {index, at.start + at.taken_bytes - cut.last, cut.last};
}

// Computes what the node knows of itself and of the nodes right below it. Returns true if that has
// changed.
bool update(StretchNodes& all, StretchIndex at) {
  Stretch& own = all[at];
  const Cut cut(own);
  std::array<std::uint32_t, rooms> most{};
  for (std::size_t i = 0; i < rooms; ++i)
    most[i] = in_steps(cut.largest(own, static_cast<Room>(i)));
  for (const StretchIndex below : {own.tree.left, own.tree.right}) {
    if (below == 0) continue;
    for (std::size_t i = 0; i < rooms; ++i)
      most[i] = std::max(most[i], all[below].tree.most_steps[i]);
  }
  return std::exchange(own.tree.most_steps, most) != most;
}

// Updates `from` and all nodes above it, up to but not including `end`.
void update_to(StretchNodes& all, StretchIndex from, StretchIndex end) {
  for (StretchIndex at = from; at != end; at = all[at].tree.up) update(all, at);
}

// Updates the node and those above it, as far as anything changes.
void update_up(StretchNodes& all, StretchIndex from) {
  for (StretchIndex at = from; at != 0 && update(all, at); at = all[at].tree.up) {
  }
}

// A search for stretches that have a part of so many steps.
struct Search {
  const StretchNodes& all;
  const Room room;
  const std::uint32_t steps;

  bool fits(StretchIndex at) const {
    return in_steps(Cut(all[at]).largest(all[at], room)) >= steps;
  }
  // True if the node, or one below it, fits.
  bool has_one(StretchIndex at) const {
    return at != 0 && all[at].tree.most_steps[static_cast<std::size_t>(room)] >= steps;
  }
  // Returns the first one, of the node and those below it, that fits; 0 if there is none.
  StretchIndex first(StretchIndex at) const {
    if (!has_one(at)) return 0;
    for (;;) {
      const Stretch::InTree& tree = all[at].tree;
      if (has_one(tree.left))
        at = tree.left;
      else if (fits(at))
        return at;
      else
        at = tree.right;
    }
  }
  // Returns the first one after the node that fits; 0 if there is none.
  StretchIndex next(StretchIndex at) const {
    StretchIndex found = first(all[at].tree.right);
    for (StretchIndex up = all[at].tree.up; found == 0 && up != 0; up = all[up].tree.up) {
      if (all[up].tree.left == at) found = fits(up) ? up : first(all[up].tree.right);
      at = up;
    }
    return found;
  }
};

}  // namespace

void FreeTree::put(StretchNodes& all, StretchIndex up, bool is_left, StretchIndex at) noexcept {
  if (at != 0) all[at].tree.up = up;
  if (up == 0)
    root_ = at;
  else
    (is_left ? all[up].tree.left : all[up].tree.right) = at;
}

// Finds the position by height. Cuts the subtree there into the nodes before and after the stretch.
void FreeTree::add(StretchNodes& all, StretchIndex added) noexcept {
  const std::uint64_t start = all[added].start;
  all[added].tree = {};
  StretchIndex up = 0, at = root_;
  bool is_left = false;
  while (at != 0 && height(at) >= height(added)) {
    up = at;
    is_left = start < all[at].start;
    at = is_left ? all[at].tree.left : all[at].tree.right;
  }
  put(all, up, is_left, added);
  // The lowest nodes so far of both new subtrees; each gets the next piece of the old one.
  StretchIndex before = added, after = added;
  while (at != 0) {
    if (all[at].start < start) {
      put(all, before, before == added, at);
      before = at;
      at = all[at].tree.right;
    } else {
      put(all, after, after != added, at);
      after = at;
      at = all[at].tree.left;
    }
  }
  put(all, before, before == added, 0);
  put(all, after, after != added, 0);
  update_to(all, before, added);
  update_to(all, after, added);
  update(all, added);
  update_up(all, up);
}

void FreeTree::resized(StretchNodes& all, StretchIndex at) noexcept { update_up(all, at); }

// Joins the nodes below the stretch to one subtree at its position.
void FreeTree::remove(StretchNodes& all, StretchIndex removed) noexcept {
  const Stretch::InTree& gone = all[removed].tree;
  const StretchIndex above = gone.up;
  StretchIndex before = gone.left, after = gone.right, up = above;
  bool is_left = up != 0 && all[up].tree.left == removed;
  while (before != 0 && after != 0) {
    const bool takes_before = height(before) >= height(after);
    const StretchIndex next = takes_before ? before : after;
    put(all, up, is_left, next);
    up = next;
    is_left = !takes_before;
    (takes_before ? before : after) = takes_before ? all[next].tree.right : all[next].tree.left;
  }
  put(all, up, is_left, before != 0 ? before : after);
  update_to(all, up, above);
  update_up(all, above);
}

StretchIndex FreeTree::last_up_to(const StretchNodes& all, std::uint64_t address) const noexcept {
  StretchIndex last = 0;
  for (StretchIndex at = root_; at != 0;) {
    const bool is_up_to = all[at].start <= address;
    if (is_up_to) last = at;
    at = is_up_to ? all[at].tree.right : all[at].tree.left;
  }
  return last;
}

std::optional<FreePart> FreeTree::find(const StretchNodes& all, Room room, std::uint64_t bytes,
                                       int most_compared) const noexcept {
  const Search search{all, room, in_steps(bytes)};
  std::optional<FreePart> best;
  int compared = 0;
  for (StretchIndex at = search.first(root_); at != 0 && compared < most_compared;
       at = search.next(at), ++compared) {
    const FreePart part = part_of(all[at], at, room, bytes);
    if (!best || part.bytes < best->bytes) best = part;
    if (best->bytes == bytes) break;
  }
  return best;
}

}  // namespace cuwarden::pool
