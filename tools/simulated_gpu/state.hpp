// The objects behind the driver's handles. Everything here is guarded by Simulator::mutex.
// A handle is the object's address; objects are kept after their destruction (marked) so
// that a stale handle is answered with an error rather than by chance.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "tools/simulated_gpu/address_arena.hpp"
#include "tools/simulated_gpu/device_share.hpp"
#include "tools/simulated_gpu/driver_headers.hpp"
#include "tools/simulated_gpu/slab.hpp"

namespace cuwarden::simulated_gpu {

using Clock = std::chrono::steady_clock;

struct Capture;
struct Context;
struct Device;
struct GraphExec;
struct MemoryPool;
struct PhysicalHandle;

// A stream is the moment until which it is busy: work takes time but nobody computes.
struct Stream {
  Context* context = nullptr;
  unsigned flags = 0;
  int priority = 0;
  unsigned long long id = 0;
  bool destroyed = false;
  Clock::time_point busy_until{};
  Clock::time_point last_free{};  // when it comes to the last free in it
  unsigned running_callbacks = 0;
  unsigned long long callbacks_queued = 0;
  unsigned long long callbacks_finished = 0;
  std::shared_ptr<Capture> capture;
};

struct Event {
  Context* context = nullptr;
  unsigned flags = 0;
  bool destroyed = false;
  bool recorded = false;
  Stream* stream = nullptr;
  Clock::time_point at{};
  std::weak_ptr<Capture> captured;  // recorded in a capture: no time, a place in the graph
  std::vector<void*> captured_nodes;
};

enum class RangeKind {
  device,          // cuMemAlloc and relatives
  stream_ordered,  // a block of a pool
  managed,
  pinned,
  registered,
  mapping,   // a physical handle mapped into a reservation
  imported,  // opened from another handle: IPC, external memory, pool pointer
  graph,     // given out by a graph's allocation node
};

// Range::flags of an imported range that cuMemFree takes.
constexpr unsigned kImportedFreeable = 1;
// Range::flags of a device range that belongs to an array: cuMemFree does not know it.
constexpr unsigned kArrayMemory = 2;

// One range of addresses that the driver knows.
struct Range {
  CUdeviceptr start = 0;
  std::size_t requested = 0;
  std::size_t held = 0;  // what it takes from the device; 0 inside a slab or a pool
  RangeKind kind = RangeKind::device;
  Context* context = nullptr;  // null where no context owns it
  Device* device = nullptr;    // null for host memory
  unsigned flags = 0;
  unsigned long long buffer_id = 0;
  bool in_slab = false;
  bool sync_memops = false;
  MemoryPool* pool = nullptr;
  PhysicalHandle* physical = nullptr;
  std::uint64_t readable = 0;  // of a mapping: by device ordinal, bit 63 for the host
  std::uint64_t writable = 0;
  int references = 1;
  std::size_t lead = 0;           // of an import: bytes of its mapping before the start
  unsigned long long source = 0;  // of an import: which memory of which process
  GraphExec* exec = nullptr;
};

class RangeTable {
 public:
  Range& insert(const Range& range);
  // The range that begins here.
  Range* at(CUdeviceptr start);
  // The range that this address is in.
  Range* around(CUdeviceptr address);
  bool overlaps(CUdeviceptr start, std::size_t size);
  void erase(CUdeviceptr start) { ranges_.erase(start); }
  template <typename Condition>
  std::vector<CUdeviceptr> where(Condition condition) {
    std::vector<CUdeviceptr> found;
    for (auto& [start, range] : ranges_) {
      if (condition(range)) found.push_back(start);
    }
    return found;
  }

 private:
  std::map<CUdeviceptr, Range> ranges_;
  unsigned long long next_buffer_id_ = 1;
};

// cuMemFreeAsync of memory that no pool owns: gone for the program, held until a
// synchronisation of its stream.
struct DeferredFree {
  Range range;
  Stream* stream = nullptr;
};

struct Context {
  Device* device = nullptr;
  bool primary = false;
  bool destroyed = false;
  unsigned flags = 0;
  unsigned api_version = 3020;
  unsigned long long id = 0;
  std::size_t overhead = 0;       // what the context itself takes from the device
  std::size_t local_bytes = 0;    // per thread, as there is now
  bool local_given_back = false;  // after a refusal: not even what a context has from the start
  bool device_runtime = false;    // what code with device-side malloc needs is loaded
  bool heap_made = false;         // for device-side malloc
  unsigned frees_waiting = 0;     // for the device; who allocates meanwhile waits for them
  SlabHeap slabs;
  Stream legacy;
  std::map<int, std::unique_ptr<Stream>> per_thread;  // by kernel thread id
  std::set<Stream*> streams;
  std::set<int> peers;
  std::vector<DeferredFree> deferred;
  std::map<int, std::size_t> limits;
  CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
  CUsharedconfig shared_config = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
};

struct Device {
  Device(int number, int place, std::size_t memory, std::size_t others, DeviceShare& processes)
      : ordinal(number),
        board(place),
        share(processes),
        capacity(memory),
        other_process(others),
        arena(memory) {}

  std::size_t free_bytes() const {
    const std::size_t taken = used + other_process + share.used_by_others(board);
    return taken < capacity ? capacity - taken : 0;
  }
  bool charge(std::size_t bytes) {
    const DeviceShare::Taking taking(share);
    if (bytes > free_bytes() || bytes > process_limit - std::min(used, process_limit)) return false;
    used += bytes;
    share.publish(board, used);
    return true;
  }
  void refund(std::size_t bytes) {
    used -= bytes;
    share.publish(board, used);
  }

  int ordinal;  // in this process
  int board;    // in the machine
  DeviceShare& share;
  std::size_t capacity;
  std::size_t other_process;
  std::size_t process_limit = SIZE_MAX;  // of `used`: MPS's
  std::size_t used = 0;
  AddressArena arena;
  bool had_context = false;
  Context* primary = nullptr;
  unsigned primary_references = 0;
  unsigned primary_flags = 0;
  // Host memory that the device has mapped, and what the tables for that take of the device.
  std::size_t host_mapped = 0;
  std::size_t host_tables = 0;
  MemoryPool* default_pool = nullptr;
  MemoryPool* current_pool = nullptr;
  // Memory of launched graphs that stays with the device until it is trimmed.
  std::size_t graph_used = 0;
  std::size_t graph_reserved = 0;
  std::size_t graph_used_high = 0;
  std::size_t graph_reserved_high = 0;
};

// Live handles of one type. What is removed stays allocated.
template <typename T>
class Handles {
 public:
  template <typename Handle>
  T* find(Handle handle) {
    T* object = reinterpret_cast<T*>(handle);
    return live_.count(object) != 0 ? object : nullptr;
  }
  T* add(std::unique_ptr<T> object) {
    T* raw = object.get();
    live_.insert(raw);
    kept_.push_back(std::move(object));
    return raw;
  }
  // Whether this was once a handle.
  template <typename Handle>
  bool was(Handle handle) const {
    const T* const object = reinterpret_cast<T*>(handle);
    for (const auto& kept : kept_) {
      if (kept.get() == object) return true;
    }
    return false;
  }
  void remove(T* object) { live_.erase(object); }
  void revive(T* object) { live_.insert(object); }
  const std::unordered_set<T*>& all() const { return live_; }

 private:
  std::unordered_set<T*> live_;
  std::vector<std::unique_ptr<T>> kept_;
};

}  // namespace cuwarden::simulated_gpu
