// A word of memory that points to a block, with the words around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reporters/reachability/block_index.hpp"

namespace cuwarden::reachability {

// The kind of memory in which a word lies.
enum class HitLocation : std::uint8_t {
  // The word is a library's variable, or lies on a stack or in a register. The driver keeps no
  // records of blocks there.
  certain,
  // The word lies in a chunk of glibc's malloc that is in use.
  chunk,
  // The word lies in other memory, such as that of another allocator, or a chunk above 256 KiB.
  unknown,
};

// A word of the searched memory that points to or into a block.
struct Hit {
  // Block to which `word` points; belongs to the BlockIndex of the search. Null until it is set.
  const Block* block = nullptr;
  std::uint64_t word = 0;  // value of the word that points to the block
  std::uint64_t next = 0;  // value of the word behind `word` in memory; 0 also if it is unknown
  // Kind of memory in which `word` lies.
  HitLocation location = HitLocation::unknown;
  // If `location` is `chunk`: size in bytes of the chunk that holds `word`, header included.
  // Otherwise 0.
  std::uint64_t chunk_bytes = 0;
  // Address of the header of the chunk that holds `word`; 0 if `location` is not `chunk`.
  std::uint64_t chunk = 0;
  // Words of the chunk that holds `word`, as far as the chunk's user may write them. Empty if the
  // chunk has more than largest_shape_bytes, or if `location` is not `chunk`.
  std::span<const std::uint64_t> around;
  // If `location` is `chunk`: number of words between the chunk's header and `word`. This is the
  // index of `word` in `around`, unless that is empty. Otherwise 0.
  std::size_t index = 0;
};

// Size in bytes of the largest chunk of malloc whose contents Hit::around has. (The largest record
// of a block that NVIDIA's driver 580 keeps has 800 bytes.)
inline constexpr std::uint64_t largest_shape_bytes = 2048;

}  // namespace cuwarden::reachability
