// The form of the chunks into which glibc's malloc cuts memory.
// https://sourceware.org/glibc/wiki/MallocInternals
#pragma once

#include <cstdint>

namespace cuwarden::reachability {

// A chunk of glibc's malloc begins with a header of two words, behind which its contents begin. The
// first word is the size of the chunk before it, if that chunk is free. The second one is the size
// of the chunk itself, header included; its lowest three bits are flags. All sizes are in bytes.
inline constexpr std::uint64_t chunk_header_bytes = 16, smallest_chunk_bytes = 32;
// The bits of a header's second word that are the size of the chunk.
inline constexpr std::uint64_t chunk_size_bits = ~std::uint64_t{7};

// True if a chunk of malloc may have this size. `bytes`: size of the chunk, header included.
// `most`: bytes of memory from the chunk's start to the end of the heap.
constexpr bool is_sound_chunk_size(std::uint64_t bytes, std::uint64_t most) {
  return bytes >= smallest_chunk_bytes && bytes % chunk_header_bytes == 0 && bytes <= most;
}

}  // namespace cuwarden::reachability
