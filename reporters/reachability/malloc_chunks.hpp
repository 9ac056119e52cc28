// The form of the chunks into which glibc's malloc cuts memory.
// https://sourceware.org/glibc/wiki/MallocInternals
#pragma once

#include <cstdint>

namespace cuwarden::reachability {

// A chunk begins with a header: the size of the chunk before it, if that is free, and its own size
// in bytes, whose lowest three bits are flags. The contents begin behind it.
inline constexpr std::uint64_t chunk_header_bytes = 16, smallest_chunk_bytes = 32;
inline constexpr std::uint64_t chunk_size_bits = ~std::uint64_t{7};

// True if a chunk may have that size in bytes, with its header. `most`: memory from its start on.
constexpr bool is_sound_chunk_size(std::uint64_t bytes, std::uint64_t most) {
  return bytes >= smallest_chunk_bytes && bytes % chunk_header_bytes == 0 && bytes <= most;
}

}  // namespace cuwarden::reachability
