// Memory pools (CUmemoryPool) for stream-ordered allocation, as by cuMemAllocAsync. A pool takes
// chunks from the device and cuts them into blocks. A block that was freed in a stream is pending
// until the program has synchronised with that stream. Until then a request in the same stream may
// get the block at once; a request in another stream only by waiting for the first one; and the
// device not at all.
#pragma once

#include <map>
#include <set>

#include "tools/simulated_gpu/device/state.hpp"

namespace cuwarden::simulated_gpu {

// A memory pool. Its handle, a CUmemoryPool, is its address. Guarded by the simulator's lock.
struct MemoryPool {
  explicit MemoryPool(Device* owner) : device(owner) {}

  // State of a block. used: the program has it. pending: freed in a stream that has not been
  // synchronised since. free: any stream may have it.
  enum class State { used, pending, free };
  // A part of a chunk. The blocks of a chunk fill it without gaps.
  struct Block {
    std::size_t size = 0;  // In bytes, a multiple of 512.
    State state = State::used;
    Stream* stream = nullptr;  // Only for pending blocks: the stream in which the block was freed.
    CUdeviceptr chunk = 0;     // Start of the chunk that contains the block.
  };
  // Device memory that a memory pool has taken from the device in one piece, and cuts into blocks.
  struct Chunk {
    std::size_t size = 0;     // In bytes, a multiple of 2 MiB.
    std::size_t used = 0;     // Bytes in used blocks.
    std::size_t pending = 0;  // Bytes in pending blocks.
  };

  Device* device;
  bool is_default = false;  // True for the pool that the device has from the start.
  bool imported = false;    // True for a pool of another process, which gives out no memory here.
  bool destroyed = false;
  // When a stream is synchronised, the pool gives free chunks back to the device until it has at
  // most this many bytes.
  std::size_t release_threshold = 0;
  std::size_t max_size = 0;  // Most bytes that the pool may take from the device; 0: no limit.
  // reserved: bytes of all chunks. used: bytes of all used blocks. The _high fields are the largest
  // values of both so far, which the program may reset.
  std::size_t reserved = 0, reserved_high = 0;
  std::size_t used = 0, used_high = 0;
  // Values of the reuse attributes of cuMemPoolSetAttribute; stored, but without effect.
  int reuse_event_dependencies = 1, reuse_opportunistic = 1, reuse_internal = 1;
  CUmemAllocationHandleType handle_types = CU_MEM_HANDLE_TYPE_NONE;  // Handles it can export.
  std::map<int, CUmemAccess_flags> access;  // Access of other devices, by device ordinal.
  std::map<CUdeviceptr, Chunk> chunks;      // By start.
  std::map<CUdeviceptr, Block> blocks;      // By start.
  // Size and start of each block that the program does not have. Blocks freed in a stream that was
  // not synchronised since are listed under that stream; blocks that any stream may have, under
  // null.
  std::map<Stream*, std::set<std::pair<std::size_t, CUdeviceptr>>> available;

  // Returns the start of a block of at least `size` bytes, for use in the stream; 0 if the device
  // has no room. If only pending blocks of other streams are left, takes these and makes `stream`
  // busy until all streams of the device are idle.
  CUdeviceptr take(std::size_t size, Stream* stream);
  // Frees the used block at `start` in the order of the stream: the block is pending until the
  // program has synchronised with the stream.
  void give_pending(CUdeviceptr start, Stream* stream);
  // Frees the used block at `start` at once: any stream may have it.
  void give_now(CUdeviceptr start);
  // Marks the blocks that were freed in the stream as free for all streams, because the program has
  // synchronised with it. Null: the pending blocks of all streams.
  void observe(Stream* stream);
  // Gives chunks without used or pending blocks back to the device, until the pool has at most
  // `keep` bytes or no such chunk is left.
  void trim(std::size_t keep);
  // Gives all chunks back to the device, even those with used blocks; for a pool that ends.
  void release_all();

 private:
  // Takes `size` bytes from the smallest sufficient block that is listed under `owner` in
  // `available`, and returns their start; 0 if there is no such block. `owner`: a stream, or null
  // for free blocks.
  CUdeviceptr cut(Stream* owner, std::size_t size);
  // Takes a chunk of at least `size` bytes from the device; of 32 MiB or more if there is room.
  // Returns false if the device has no room or max_size would be exceeded.
  bool grow(std::size_t size);
  // Marks `block`, which begins at `start`, with `state`: free (then `stream` is null) or pending
  // (then `stream` has freed it). Joins it with neighbours in the chunk that have equal state and
  // stream.
  void make_available(CUdeviceptr start, Block& block, State state, Stream* stream);
};

}  // namespace cuwarden::simulated_gpu
