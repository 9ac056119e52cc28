// Memory pools (CUmemoryPool) for stream-ordered allocation, as by cuMemAllocAsync. A pool takes
// chunks from the device and cuts them into blocks. A block that was freed in a stream is pending
// until the program has synchronised with that stream. A request in the same stream may get a
// pending block at once; a request in another stream only after a wait. A chunk with a pending
// block does not go back to the device.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "tools/simulated_gpu/device/state.hpp"

namespace cuwarden::simulated_gpu {

// A memory pool. Its handle, a CUmemoryPool, is the object's address, and is stale once the program
// has destroyed the pool. Callers hold Simulator::mutex.
struct MemoryPool {
  // `owner`: the device whose memory the pool gives out; not null, and outlives the pool.
  explicit MemoryPool(Device* owner) : device(owner) {}

  // State of a block of a memory pool. used: given to the program. pending: freed in a stream with
  // which the program has not synchronised since. free: may be given to any stream.
  enum class State { used, pending, free };
  // A part of a chunk that as a whole is given to the program, free, or pending: freed in a stream
  // with which the program has not synchronised since. The blocks of a chunk fill it without gaps.
  struct Block {
    std::size_t size = 0;       // Bytes of the block, a multiple of 512.
    State state = State::used;  // State of the block: given to the program, pending or free.
    Stream* stream = nullptr;   // Only for pending blocks: the stream in which the block was freed.
    CUdeviceptr chunk = 0;      // Start address of the chunk that contains the block.
  };
  // Device memory that a memory pool has taken from the device in one piece, and cuts into blocks.
  struct Chunk {
    std::size_t size = 0;  // Bytes of the chunk, a multiple of 2 MiB.
    std::size_t used = 0;  // Bytes of the chunk in blocks that the program has.
    // Bytes of the chunk in pending blocks: freed in a stream with which the program has not
    // synchronised since.
    std::size_t pending = 0;
  };

  Device* device;           // The device whose memory the pool gives out; not owned.
  bool is_default = false;  // True for the device's default pool (cuDeviceGetDefaultMemPool).
  // True for the import of another process's pool, which serves no requests here.
  bool imported = false;
  // Bytes that the pool may keep. When the program synchronises with a stream, the pool gives free
  // chunks back to the device until all its chunks together have at most this many bytes.
  std::size_t release_threshold = 0;
  std::size_t max_size = 0;  // Most bytes that the pool may take from the device; 0: no limit.
  // reserved: bytes that this pool (a CUmemoryPool) has taken from the device. reserved_high:
  // largest value of `reserved` since the pool was made or the program last reset it
  // (cuMemPoolSetAttribute).
  std::size_t reserved = 0, reserved_high = 0;
  // Bytes that cuMemFree() has freed. The driver goes on counting them as used in its attributes
  // (measured).
  std::size_t freed_otherwise = 0;
  // used: bytes of the pool that the program has allocated and not freed. used_high: largest value
  // of `used` and `freed_otherwise` together since the pool was made or the program last reset it
  // (cuMemPoolSetAttribute).
  std::size_t used = 0, used_high = 0;
  // Values of the reuse attributes of cuMemPoolSetAttribute; stored, but without effect.
  int reuse_event_dependencies = 1, reuse_opportunistic = 1, reuse_internal = 1;
  // Access of other devices to the pool's memory, by the device's ordinal (cuMemPoolSetAccess);
  // stored, but not checked by copies.
  std::map<int, CUmemAccess_flags> access;
  // Chunks of device memory that the pool has, by start address.
  std::map<CUdeviceptr, Chunk> chunks;
  std::map<CUdeviceptr, Block> blocks;  // Blocks into which the chunks are cut, by start address.
  // Size in bytes and start of each block that is not used. Pending blocks are listed under the
  // stream in which they were freed; free blocks under null.
  std::map<Stream*, std::set<std::pair<std::size_t, CUdeviceptr>>> available;

  // Marks a block of `size` bytes, rounded up to 512, as used, and returns its start; 0 if the
  // device has too little memory or max_size would be exceeded. `stream`: the stream of the
  // request, never null. If the memory does not suffice without blocks that are pending in other
  // streams, makes `stream` wait: it is busy until all streams of the device are idle. The pending
  // blocks of all pools of the device become free at once, even if the result is 0.
  CUdeviceptr take(std::size_t size, Stream* stream);
  // Frees the used block that starts at `start`, in stream order: the block is pending until the
  // program has synchronised with `stream`.
  void give_pending(CUdeviceptr start, Stream* stream);
  // Frees the used block that starts at `start` at once, so that any stream may get it.
  void give_now(CUdeviceptr start);
  // Marks the pending blocks that were freed in `stream` as free for all streams, because the
  // program has synchronised with that stream. `stream` null: the pending blocks of all streams.
  void observe(Stream* stream);
  // Gives chunks back to the device until those that are left have at most `keep` bytes together. A
  // chunk with a used or pending block always stays.
  void trim(std::size_t keep);

 private:
  // Takes `size` bytes from the smallest block in available[owner] that suffices, and returns their
  // start; 0 if there is no block of that size. `owner`: the stream in which pending blocks were
  // freed; null: the free blocks.
  CUdeviceptr cut(Stream* owner, std::size_t size);
  // Takes a chunk of at least `size` bytes from the device, of 32 MiB or more if possible, and
  // makes it one free block. Returns false, and takes nothing, if the device has too few free bytes
  // or max_size would be exceeded.
  bool grow(std::size_t size);
  // Sets the state of `block`, which begins at `start`: free (`stream` is null), or pending
  // (`stream` is the one in which it was freed). Joins the block with neighbours in its chunk that
  // have the same state and stream.
  void make_available(CUdeviceptr start, Block& block, State state, Stream* stream);
};

// Returns the memory pools of the process: the live ones, and those that the program destroyed
// while it had memory of theirs, until the last of that memory is freed.
std::vector<MemoryPool*> all_memory_pools();

}  // namespace cuwarden::simulated_gpu
