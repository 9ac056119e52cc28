// Free stretches of addresses, in the order of their addresses. Finds the first one that is large
// enough, without looking at all of them.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime_hooks/pool/packing/stretch_nodes.hpp"

namespace cuwarden::pool {

// Parts of a free stretch in which FreeTree::find() can look for room. Right before and after the
// stretch lie blocks, withheld addresses or the memory's end. So a page that lies in the stretch
// only in part is partly used.
enum class Room : std::uint8_t {
  // The whole stretch.
  whole,
  // The part before the stretch's first page boundary (2 MiB), or that after its last one. The
  // whole stretch if no whole page lies in it.
  used_pages,
  // Like `used_pages`, but the whole stretch only if it has no page boundary: the part then lies in
  // one page.
  one_used_page,
  // The whole pages that lie in the stretch.
  free_pages,
};

// A part of a free stretch of addresses: the number of the stretch, the first address of the part,
// and its size in bytes.
struct FreePart {
  StretchIndex stretch = 0;
  std::uint64_t start = 0, bytes = 0;
};

// A set of free stretches, as a binary tree in the order of addresses. Each node knows, for each
// kind of part (Room), the size of the largest one in its own stretch and in all stretches below
// it. Of two nodes, the one whose number has the larger hash lies above. So the tree's depth grows
// with the logarithm of the number of stretches. The stretches themselves are kept in the
// StretchNodes that each function gets.
class FreeTree {
 public:
  // Adds the stretch, which must not be in a tree. While it is in the tree, its start and size may
  // change, if resized() is called afterwards and its rank in the order of addresses stays.
  void add(StretchNodes&, StretchIndex) noexcept;
  // Removes the stretch, which must be in this tree.
  void remove(StretchNodes&, StretchIndex) noexcept;

  // Must be called when the start or the size of the stretch, which is in this tree, has changed.
  static void resized(StretchNodes&, StretchIndex) noexcept;

  // Compares the first `most_compared` stretches, in the order of addresses, that have a part of
  // the kind `Room` with at least `bytes`, a multiple of 512. Returns the smallest of these parts;
  // none if no stretch has one.
  std::optional<FreePart> find(const StretchNodes&, Room, std::uint64_t bytes,
                               int most_compared) const noexcept;

  // Returns the last stretch, in the order of addresses, that begins at the address or below; 0 if
  // there is none.
  StretchIndex last_up_to(const StretchNodes&, std::uint64_t address) const noexcept;

 private:
  // Makes the stretch the left (`is_left`) or the right node below `up`; the root if `up` is 0. If
  // the stretch is 0, there is no node at that position from then on.
  void put(StretchNodes&, StretchIndex up, bool is_left, StretchIndex) noexcept;

  StretchIndex root_ = 0;
};

}  // namespace cuwarden::pool
