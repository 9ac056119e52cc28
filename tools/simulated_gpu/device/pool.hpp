// Memory pools for stream-ordered allocation. A pool takes chunks from the device and cuts them
// into blocks. A freed block is pending until the stream that freed it is synchronised. Until then
// the same stream may have it back at once, another stream by waiting, and the device not at all.
#pragma once

#include <map>
#include <set>

#include "tools/simulated_gpu/device/state.hpp"

namespace cuwarden::simulated_gpu {

struct MemoryPool {
  explicit MemoryPool(Device* owner) : device(owner) {}

  enum class State { used, pending, free };
  struct Block {
    std::size_t size = 0;
    State state = State::used;
    Stream* stream = nullptr;  // The stream of the free; only for pending blocks.
    CUdeviceptr chunk = 0;
  };
  struct Chunk {
    std::size_t size = 0;
    std::size_t used = 0;     // Bytes in used blocks.
    std::size_t pending = 0;  // Bytes in pending blocks.
  };

  Device* device;
  bool is_default = false;
  bool imported = false;
  bool destroyed = false;
  std::size_t release_threshold = 0;
  std::size_t max_size = 0;
  std::size_t reserved = 0, reserved_high = 0;
  std::size_t used = 0, used_high = 0;
  int reuse_event_dependencies = 1, reuse_opportunistic = 1, reuse_internal = 1;
  CUmemAllocationHandleType handle_types = CU_MEM_HANDLE_TYPE_NONE;
  std::map<int, CUmemAccess_flags> access;
  std::map<CUdeviceptr, Chunk> chunks;
  std::map<CUdeviceptr, Block> blocks;
  // Blocks that can be taken, by stream and size; those under null are free for all streams.
  std::map<Stream*, std::set<std::pair<std::size_t, CUdeviceptr>>> available;

  // Returns a block for the stream; 0 if the device has not enough memory. May make `stream` wait
  // for other streams' frees.
  CUdeviceptr take(std::size_t size, Stream* stream);
  // Frees the block in the order of the stream: it becomes pending.
  void give_pending(CUdeviceptr start, Stream* stream);
  // Frees the block at once.
  void give_now(CUdeviceptr start);
  // Marks the pending blocks of the stream (null: of all streams) as free, because it has reached
  // their frees.
  void observe(Stream* stream);
  // Gives free chunks back to the device until at most `keep` bytes are reserved.
  void trim(std::size_t keep);
  void release_all();

 private:
  // Takes a block of at least `size` bytes from those available to `owner`; 0 if there is none.
  CUdeviceptr cut(Stream* owner, std::size_t size);
  // Adds a chunk that holds at least `size` bytes. Returns false if the device or a limit refuses.
  bool grow(std::size_t size);
  // Marks the block as free or pending and joins it with its neighbours.
  void make_available(CUdeviceptr start, Block& block, State state, Stream* stream);
};

}  // namespace cuwarden::simulated_gpu
