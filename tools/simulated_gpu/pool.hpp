// Stream-ordered pools. A pool takes chunks from the device and cuts them into blocks.
// A freed block is pending until a synchronisation of the stream that freed it: the same
// stream may have it back at once, another by waiting, and the device not at all.
#pragma once

#include <map>
#include <set>

#include "tools/simulated_gpu/state.hpp"

namespace cuwarden::simulated_gpu {

struct MemoryPool {
  explicit MemoryPool(Device* owner) : device(owner) {}

  enum class State { used, pending, free };
  struct Block {
    std::size_t size = 0;
    State state = State::used;
    Stream* stream = nullptr;  // of the free, while pending
    CUdeviceptr chunk = 0;
  };
  struct Chunk {
    std::size_t size = 0;
    std::size_t used = 0;     // bytes in used blocks
    std::size_t pending = 0;  // bytes in pending blocks
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
  std::map<Stream*, std::set<std::pair<std::size_t, CUdeviceptr>>> available;  // null: free for all

  // 0 when the device has not enough. May make `stream` wait for another stream's frees.
  CUdeviceptr take(std::size_t size, Stream* stream);
  void give_pending(CUdeviceptr start, Stream* stream);
  void give_now(CUdeviceptr start);
  // The frees of a stream (null: of all) have been reached.
  void observe(Stream* stream);
  // Whole free chunks go back until at most `keep` bytes are reserved.
  void trim(std::size_t keep);
  void release_all();

 private:
  CUdeviceptr cut(Stream* owner, std::size_t size);
  bool grow(std::size_t size);
  void make_available(CUdeviceptr start, Block& block, State state, Stream* stream);
};

}  // namespace cuwarden::simulated_gpu
