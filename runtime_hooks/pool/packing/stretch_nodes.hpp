// Stretches of addresses, of which Packing consists, and the host memory that they take.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace cuwarden::pool {

// Bytes of a step: address and size of each stretch are multiples of it.
inline constexpr std::uint64_t step_bytes = 512;

// Number of a stretch in StretchNodes; 0 means no stretch.
using StretchIndex = std::uint32_t;

// Number of enumerators of Room, the kinds of parts of a free stretch.
inline constexpr std::size_t rooms = 4;

// The use of a stretch of addresses.
enum class StretchState : std::uint8_t {
  unused,    // The node has no addresses.
  hole,      // The stretch is free and has memory.
  bare,      // The stretch is free, has no memory, and consists of whole pages.
  withheld,  // The stretch is free, but no block may use it.
  live,      // The stretch is a block that the program has not freed.
  retired,   // The program has freed the block, but the device may still use it.
};

// A stretch of addresses in a region: a block, or free addresses between blocks.
struct Stretch {
  // The fields of a block.
  struct OfBlock {
    std::uint64_t bytes = 0;   // bytes that the program asked for
    std::uint64_t serial = 0;  // a number that no other block of the process ever has
  };
  // The position of a hole or a bare stretch in a FreeTree. `left` and `right` are the nodes right
  // below it, with the trees of lower and of higher addresses; `up` is the node above it. 0: there
  // is no node. `most_steps` has a size for each kind of part (Room): that of the largest such part
  // in this stretch and in all stretches below it, in steps of 512 bytes.
  struct InTree {
    StretchIndex left = 0, right = 0, up = 0;
    std::array<std::uint32_t, rooms> most_steps{};
  };

  // The stretch's first address and its size, a multiple of 512 bytes.
  std::uint64_t start = 0, taken_bytes = 0;
  // `block` is valid while `state` is live or retired; `tree` is valid while `state` is hole or
  // bare.
  union {
    OfBlock block;
    InTree tree;
  };
  // The stretches right before and after this one in the region; 0 at the region's ends. In an
  // unused node, `after` is the next unused node.
  StretchIndex before = 0, after = 0;
  StretchState state = StretchState::unused;
  // Only for a block: true if the program set CU_POINTER_ATTRIBUTE_SYNC_MEMOPS.
  bool sync_memops = false;

  Stretch() noexcept : block() {}
};

// Host memory for stretches. It is freed when the object is destroyed, not before.
class StretchNodes {
 public:
  // Returns the stretch with this number, which add() must have returned. Stays valid until drop().
  Stretch& operator[](StretchIndex at) const noexcept { return chunks_[at / chunk][at % chunk]; }
  // Makes sure that add() can be called `count` times. May throw std::bad_alloc.
  void reserve(std::uint64_t count);
  // Returns the number of a new stretch without addresses. reserve() must have been called before.
  StretchIndex add() noexcept;
  // Makes the stretch's node unused, so that a later add() may return its number. The caller has
  // taken the stretch out of its region and of the trees of free stretches.
  void drop(StretchIndex) noexcept;

 private:
  // Number of nodes for which host memory is allocated at a time.
  static constexpr std::uint64_t chunk = 1024;
  std::vector<std::unique_ptr<Stretch[]>> chunks_;
  // First node of the list of unused nodes; 0 if there is none.
  StretchIndex unused_ = 0;
  std::uint64_t unused_count_ = 0;
};

}  // namespace cuwarden::pool
