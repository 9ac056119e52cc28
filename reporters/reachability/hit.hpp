// A word of memory that points to a block, with the words around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reporters/reachability/block_index.hpp"

namespace cuwarden::reachability {

// The kind of memory in which a word lies.
enum class HitLocation : std::uint8_t {
  certain,  // a library's variables, a stack, a register: the driver keeps no records there
  chunk,    // a chunk of glibc's malloc that is in use
  unknown,  // other memory, such as that of another allocator
};

// A word that points to or into a block.
struct Hit {
  const Block* block = nullptr;  // block to which the word points; belongs to the BlockIndex
  std::uint64_t word = 0;        // the word's value
  std::uint64_t next = 0;        // next word in memory; 0 if it is not known
  // Kind of memory in which the word lies.
  HitLocation location = HitLocation::unknown;
  // If `location` is `chunk`: size in bytes of the chunk that holds the word, header included.
  // Otherwise 0.
  std::uint64_t chunk_bytes = 0;
  // Address of the header of the chunk that holds the word; 0 if `location` is not `chunk`.
  std::uint64_t chunk = 0;
  // Words of the chunk that holds the word, as far as the chunk's user may write them. Empty if the
  // chunk has more than largest_shape_bytes, or if `location` is not `chunk`.
  std::span<const std::uint64_t> around;
  std::size_t index = 0;  // index of the word in `around`
};

// Size in bytes of the largest chunk of malloc whose contents Hit::around has. (The largest record
// of a block that NVIDIA's driver 580 keeps has 800 bytes.)
inline constexpr std::uint64_t largest_shape_bytes = 2048;

}  // namespace cuwarden::reachability
