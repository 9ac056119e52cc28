// A word of memory that points to a block, and what lies around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reporters/reachability/block_index.hpp"

namespace cuwarden::reachability {

// Kind of the memory in which a word lies.
enum class HitLocation : std::uint8_t {
  certain,  // a library's variables, a stack, a register: the driver keeps no records there
  chunk,    // a chunk of glibc's malloc that is in use
  unknown,  // other memory, such as that of another allocator
};

// A word that points to or into a block.
struct Hit {
  const Block* block = nullptr;  // the block; belongs to the index
  std::uint64_t word = 0;        // the word's value
  std::uint64_t next = 0;        // the word behind it in memory; 0 also if that is not known
  HitLocation location = HitLocation::unknown;
  // Size in bytes of the chunk that holds the word, with its header; 0 if `location` is not
  // `chunk`.
  std::uint64_t chunk_bytes = 0;
  std::uint64_t chunk = 0;  // address of the chunk; 0 if `location` is not `chunk`
  // The chunk's words that its user may write. Empty for a chunk of more than largest_shape_bytes,
  // and if `location` is not `chunk`.
  std::span<const std::uint64_t> around;
  std::size_t index = 0;  // index of the word in `around`
};

// Largest chunk, in bytes, of which Hit::around has the contents. (The largest record of a block
// that NVIDIA's driver 580 keeps has 800 bytes.)
inline constexpr std::uint64_t largest_shape_bytes = 2048;

}  // namespace cuwarden::reachability
