// Free stretches of addresses, in the order of their addresses. Finds the first one that is large
// enough, without looking at all of them.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime_hooks/pool/packing/stretch_nodes.hpp"

namespace cuwarden::pool {

// Parts of a free stretch. The stretch begins and ends at a block or at the end of the memory. So
// the pages (2 MiB) at its ends are partly used, unless they lie in the stretch as a whole.
enum class Room : std::uint8_t {
  whole,          // the whole stretch
  used_pages,     // as much of it as lies in partly used pages, side by side
  one_used_page,  // as much of it as lies in one partly used page
  free_pages,     // its pages that are wholly free
};

// A part of a free stretch.
struct FreePart {
  StretchIndex stretch = 0;
  std::uint64_t start = 0, bytes = 0;
};

// A set of stretches, as a binary tree in the order of addresses. Each node knows the largest parts
// of each kind (Room) of the stretches below it. A node lies above another one by chance (by a hash
// of its number), so that the tree's depth grows with the logarithm of the number of stretches. The
// stretches stay where they are, in StretchNodes, which every function gets.
class FreeTree {
 public:
  // Adds the stretch, which must not be in a tree. If its start or size changes while it is,
  // resized() must be called. Its rank in the order of addresses must not change.
  void add(StretchNodes&, StretchIndex) noexcept;
  // Removes the stretch, which must be in this tree.
  void remove(StretchNodes&, StretchIndex) noexcept;

  // Must be called when the start or the size of the stretch, which is in this tree, has changed.
  static void resized(StretchNodes&, StretchIndex) noexcept;

  // Returns the smallest part of this kind that has at least `bytes`, of the first `most_compared`
  // stretches, in the order of addresses, that have such a part. Returns none if there is none.
  std::optional<FreePart> find(const StretchNodes&, Room, std::uint64_t bytes,
                               int most_compared) const noexcept;

  // Returns the last stretch, in the order of addresses, that begins at the address or below; 0 if
  // there is none.
  StretchIndex last_up_to(const StretchNodes&, std::uint64_t address) const noexcept;

 private:
  // Makes `at` the left or the right node below `up`; the root if `up` is 0.
  void put(StretchNodes&, StretchIndex up, bool is_left, StretchIndex) noexcept;

  StretchIndex root_ = 0;
};

}  // namespace cuwarden::pool
