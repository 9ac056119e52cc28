// The objects behind the driver's handles. Everything here is guarded by Simulator::mutex. A handle
// is the object's address. Objects are kept after their destruction, with a mark, so that a stale
// handle is answered with an error rather than by chance.
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

#include "tools/simulated_gpu/hardware/address_arena.hpp"
#include "tools/simulated_gpu/hardware/device_share.hpp"
#include "tools/simulated_gpu/hardware/driver_headers.hpp"
#include "tools/simulated_gpu/hardware/slab.hpp"

namespace cuwarden::simulated_gpu {

using Clock = std::chrono::steady_clock;

struct Capture;
struct Context;
struct Device;
struct GraphExec;
struct MemoryPool;
struct PhysicalHandle;

// A stream. Its work only takes time, and nothing is computed: all that is kept of the work is the
// moment until which the stream is busy.
struct Stream {
  Context* context = nullptr;
  unsigned flags = 0;
  int priority = 0;
  unsigned long long id = 0;
  bool destroyed = false;
  Clock::time_point busy_until{};
  Clock::time_point last_free{};  // The moment at which the stream reaches the last free in it.
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
  // The capture that the event was recorded in. Such an event has no time, but a position in the
  // graph.
  std::weak_ptr<Capture> captured;
  std::vector<void*> captured_nodes;
};

enum class RangeKind {
  device,          // From cuMemAlloc and its relatives.
  stream_ordered,  // A block of a memory pool.
  managed,
  pinned,
  registered,
  mapping,   // A physical handle mapped into a reservation.
  imported,  // Opened from another handle: IPC, external memory, pool pointer.
  graph,     // Given out by a graph's allocation node.
};

// Value of Range::flags for an imported range that cuMemFree takes.
constexpr unsigned kImportedFreeable = 1;
// Value of Range::flags for a device range that belongs to an array: cuMemFree does not know it.
constexpr unsigned kArrayMemory = 2;

// One range of addresses that the driver knows.
struct Range {
  CUdeviceptr start = 0;
  std::size_t requested = 0;
  std::size_t held = 0;  // Bytes taken from the device; 0 inside a slab or a pool.
  RangeKind kind = RangeKind::device;
  Context* context = nullptr;  // Null if no context owns the range.
  Device* device = nullptr;    // Null for host memory.
  unsigned flags = 0;
  unsigned long long buffer_id = 0;
  bool in_slab = false;
  bool sync_memops = false;
  MemoryPool* pool = nullptr;
  PhysicalHandle* physical = nullptr;
  // Only for mappings: a bit for each device ordinal that may read, bit 63 for the host.
  std::uint64_t readable = 0;
  std::uint64_t writable = 0;
  int references = 1;
  std::size_t lead = 0;           // Only for imports: bytes of the mapping before `start`.
  unsigned long long source = 0;  // Only for imports: identifies the memory and its process.
  GraphExec* exec = nullptr;
};

class RangeTable {
 public:
  Range& insert(const Range& range);
  // Returns the range that begins at `start`; null if there is none.
  Range* at(CUdeviceptr start);
  // Returns the range that contains the address; null if there is none.
  Range* around(CUdeviceptr address);
  bool overlaps(CUdeviceptr start, std::size_t size);
  void erase(CUdeviceptr start) { ranges_.erase(start); }
  // Returns the starts of all ranges for which condition(range) is true.
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

// Memory freed by cuMemFreeAsync that belongs to no pool: gone for the program, held until its
// stream is synchronised.
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
  std::size_t overhead = 0;     // Bytes of the device that the context itself takes.
  std::size_t local_bytes = 0;  // Local memory that each thread has at present.
  // True after a refused request for local memory: the context has not even its initial share.
  bool local_given_back = false;
  bool device_runtime = false;  // True once the code for device-side malloc is loaded.
  bool heap_made = false;       // True once the heap for device-side malloc was made.
  // Frees that wait for the device; allocations wait until they are done.
  unsigned frees_waiting = 0;
  SlabHeap slabs;
  Stream legacy;
  // Default streams of threads, by kernel thread id.
  std::map<int, std::unique_ptr<Stream>> per_thread;
  std::set<Stream*> streams;
  std::set<int> peers;
  std::vector<DeferredFree> deferred;
  std::map<int, std::size_t> limits;
  CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
  CUsharedconfig shared_config = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
};

struct Device {
  Device(int number, int board_number, std::size_t memory, std::size_t others,
         DeviceShare& processes)
      : ordinal(number),
        board(board_number),
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

  int ordinal;  // Number of the device in this process.
  int board;    // Number of the device in the machine.
  DeviceShare& share;
  std::size_t capacity;
  std::size_t other_process;
  // The most that `used` may become: the limit of an MPS server.
  std::size_t process_limit = SIZE_MAX;
  std::size_t used = 0;
  AddressArena arena;
  bool had_context = false;
  Context* primary = nullptr;
  unsigned primary_references = 0;
  unsigned primary_flags = 0;
  // Bytes of host memory that the device has mapped, and bytes of the device that the tables for it
  // take.
  std::size_t host_mapped = 0;
  std::size_t host_tables = 0;
  MemoryPool* default_pool = nullptr;
  MemoryPool* current_pool = nullptr;
  // Memory of launched graphs, which stays with the device until it is trimmed.
  std::size_t graph_used = 0;
  std::size_t graph_reserved = 0;
  std::size_t graph_used_high = 0;
  std::size_t graph_reserved_high = 0;
};

// Live handles of one type. Objects that are removed stay allocated.
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
  // True if this is or was a handle of this type.
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
