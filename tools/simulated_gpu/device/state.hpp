// The objects behind the simulated driver's handles (CUstream, CUcontext and others). A handle is
// the object's address. Objects are kept, with a mark, after the program has destroyed them, so
// that the use of a stale handle always gives an error. Everything here is guarded by
// Simulator::mutex.
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

// The clock of all times on the simulated device.
using Clock = std::chrono::steady_clock;

struct Capture;
struct Context;
struct Device;
struct MemoryPool;
struct PhysicalHandle;

// A stream. Work in the stream is not executed, but takes time: the stream only stores the moment
// until which it is busy.
struct Stream {
  Context* context = nullptr;  // The context that the stream belongs to.
  unsigned flags = 0;          // CUstream_flags
  int priority = 0;
  unsigned long long id = 0;  // No other stream or context of the process has it.
  bool destroyed = false;
  Clock::time_point busy_until{};  // The moment at which all work in the stream is done.
  Clock::time_point last_free{};  // The moment at which the stream reaches its last cuMemFreeAsync.
  // Numbers of host functions (cuLaunchHostFunc) of the stream. running_callbacks: queued or
  // running now. callbacks_queued: ever queued. callbacks_finished: ever returned.
  unsigned running_callbacks = 0;
  unsigned long long callbacks_queued = 0;
  unsigned long long callbacks_finished = 0;
  std::shared_ptr<Capture> capture;  // Null if the stream is not being captured into a graph.
};

// An event. Its handle, a CUevent, is its address.
struct Event {
  Context* context = nullptr;  // The context in which the event was made.
  unsigned flags = 0;          // CUevent_flags
  bool destroyed = false;
  bool recorded = false;     // True once cuEventRecord was called.
  Stream* stream = nullptr;  // The stream in which the event was last recorded.
  Clock::time_point at{};    // The moment at which `stream` reaches the event.
  // The capture into a graph during which the event was recorded; null if there was none. Then the
  // event has no time `at`, and captured_nodes are the graph's nodes (Node*) that come before the
  // event.
  std::weak_ptr<Capture> captured;
  std::vector<void*> captured_nodes;
};

// Kinds of memory in the table of ranges.
enum class RangeKind {
  device,          // Linear device memory, from cuMemAlloc and similar functions, or of an array.
  stream_ordered,  // A block of a memory pool, from cuMemAllocAsync.
  managed,         // From cuMemAllocManaged.
  pinned,          // Page-locked host memory, from cuMemHostAlloc.
  registered,      // Host memory of the program that cuMemHostRegister has page-locked.
  mapping,         // A physical handle that cuMemMap has mapped into reserved addresses.
  imported,        // Opened from a handle of other memory: IPC, external memory, pool pointer.
  graph,           // From an allocation node of a launched graph.
};

// Value of Range::flags for memory of another process (RangeKind::imported) that the program may
// free by cuMemFree.
constexpr unsigned kImportedFreeable = 1;
// Value of Range::flags for device memory that belongs to an array or to a module's variable: the
// program may not free it by cuMemFree.
constexpr unsigned kArrayMemory = 2;

// A range of addresses that the driver gave to the program, or that the program made known to it by
// cuMemHostRegister.
struct Range {
  CUdeviceptr start = 0;      // First address.
  std::size_t requested = 0;  // Bytes that the program asked for.
  // Bytes that were taken for this range alone, from the device or the host; 0 for a part of a slab
  // or of a memory pool, whose bytes are counted there.
  std::size_t held = 0;
  RangeKind kind = RangeKind::device;
  Context* context = nullptr;  // Null if no context owns the range.
  Device* device = nullptr;    // Null for host memory.
  // Flags that the program gave to the call that made the range; kImportedFreeable for some
  // imported ranges; kArrayMemory for device memory of arrays and of modules' variables.
  unsigned flags = 0;
  unsigned long long buffer_id = 0;    // CU_POINTER_ATTRIBUTE_BUFFER_ID: unique in this process.
  bool in_slab = false;                // True if the range is a part of a slab.
  bool sync_memops = false;            // CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
  MemoryPool* pool = nullptr;          // Only for kind `stream_ordered`: the pool of the block.
  PhysicalHandle* physical = nullptr;  // Only for kind `mapping`: the handle that is mapped.
  // Only for kind `mapping`: the devices that may read, and those that may write. Bit n stands for
  // the device with ordinal n, bit 63 for the host (kHostBit).
  std::uint64_t readable = 0;
  std::uint64_t writable = 0;
  // Only for kind `imported`: number of times that the program has opened the memory and not closed
  // it. Otherwise 1.
  int references = 1;
  // Only for kind `imported`: bytes between the start of the mapped file and `start`.
  std::size_t lead = 0;
  // Only for memory opened from an IPC handle: a number that identifies the memory and the process
  // that made the handle. Otherwise 0.
  unsigned long long source = 0;
};

// All ranges of the process, by start.
class RangeTable {
 public:
  // Adds the range, with a new buffer_id; replaces a range of the table that begins at the same
  // address. Returns the range in the table, which stays valid until it is erased.
  Range& insert(const Range& range);
  // Returns the range that begins at `start`; null if there is none.
  Range* at(CUdeviceptr start);
  // Returns the range in which the address lies, among the bytes that the program asked for. Null
  // if there is none.
  Range* around(CUdeviceptr address);
  // Returns true if a range of the table shares an address with [start, start + size).
  bool overlaps(CUdeviceptr start, std::size_t size);
  // Removes the range that begins at `start` from the table; the memory is not freed.
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

// Memory of cuMemAlloc that the program has freed by cuMemFreeAsync. The device memory stays taken
// until the program has synchronised with the stream in which it was freed.
struct DeferredFree {
  Range range;               // A copy: the table of ranges has it no more.
  Stream* stream = nullptr;  // The stream in which the memory was freed.
};

// A context. Its handle, a CUcontext, is its address.
struct Context {
  Device* device = nullptr;
  bool primary = false;  // True for the device's primary context.
  bool destroyed = false;
  unsigned flags = 0;  // CUctx_flags
  // CUDA version of the function that made the context, such as 3020 for cuCtxCreate_v2; the result
  // of cuCtxGetApiVersion.
  unsigned api_version = 3020;
  unsigned long long id = 0;
  std::size_t overhead = 0;     // Bytes of the device that the context itself takes.
  std::size_t local_bytes = 0;  // Bytes of local memory that each device thread has at present.
  // True after a launch found no room for local memory: the context then has given back all of it,
  // even the part that it had from the start.
  bool local_given_back = false;
  bool device_runtime = false;  // True once the code for device-side malloc is loaded.
  bool heap_made = false;       // True once memory was taken for the heap of device-side malloc.
  // Number of threads that wait inside cuMemFree until the context is idle; allocations of linear
  // memory wait until the number is 0.
  unsigned frees_waiting = 0;
  SlabHeap slabs;
  Stream legacy;  // The legacy default stream.
  // Default streams of single threads (CU_STREAM_PER_THREAD), by kernel thread id.
  std::map<int, std::unique_ptr<Stream>> per_thread;
  std::set<Stream*> streams;  // Streams that the program has made.
  std::set<int> peers;        // Ordinals of other devices whose memory the context may access.
  std::vector<DeferredFree> deferred;  // Frees whose stream was not synchronised since.
  std::map<int, std::size_t> limits;   // Values of cuCtxSetLimit, by CUlimit.
  CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
  CUsharedconfig shared_config = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
};

// A simulated device, as this process sees it.
struct Device {
  // `number`: ordinal in this process. `board_number`: number in the machine. `memory`: bytes of
  // the device. `others`: bytes that another, made-up process holds. `processes` outlives the
  // object.
  Device(int number, int board_number, std::size_t memory, std::size_t others,
         DeviceShare& processes)
      : ordinal(number),
        board(board_number),
        share(processes),
        capacity(memory),
        other_process(others),
        arena(memory) {}

  // Returns the bytes that neither this process nor another one holds.
  std::size_t free_bytes() const {
    const std::size_t taken = used + other_process + share.used_by_others(board);
    return taken < capacity ? capacity - taken : 0;
  }
  // Counts `bytes` as used by this process, for all processes to see. Returns false, and counts
  // nothing, if fewer bytes are free, or if the process would hold more than process_limit.
  bool charge(std::size_t bytes) {
    const DeviceShare::Taking taking(share);
    if (bytes > free_bytes() || bytes > process_limit - std::min(used, process_limit)) return false;
    used += bytes;
    share.publish(board, used);
    return true;
  }
  // Counts `bytes` as free again.
  void refund(std::size_t bytes) {
    used -= bytes;
    share.publish(board, used);
  }

  int ordinal;  // Number of the device in this process.
  int board;    // Number of the device in the machine.
  DeviceShare& share;
  std::size_t capacity;       // Bytes of the device.
  std::size_t other_process;  // Bytes that a made-up process holds (CUWARDEN_SIM_OTHER_PROCESS).
  // Most bytes of the device that this process may hold, set by an MPS server; SIZE_MAX: no limit.
  std::size_t process_limit = SIZE_MAX;
  std::size_t used = 0;      // Bytes of the device that this process holds.
  AddressArena arena;        // Addresses for the device's memory.
  bool had_context = false;  // True once the device had a context; its first one takes more memory.
  Context* primary = nullptr;       // The primary context; null if there is none.
  unsigned primary_references = 0;  // Number of cuDevicePrimaryCtxRetain without a release.
  unsigned primary_flags = 0;       // Flags with which the primary context is made.
  // host_mapped: bytes of host memory that the device has mapped. host_tables: bytes of the device
  // that the page tables for this host memory take.
  std::size_t host_mapped = 0;
  std::size_t host_tables = 0;
  MemoryPool* default_pool = nullptr;  // The pool that the device has from the start.
  MemoryPool* current_pool = nullptr;  // The pool that cuMemAllocAsync uses.
  // Bytes of the device for memory of launched graphs. graph_used: in use now. graph_reserved: in
  // use or kept for the next launch, until the device is trimmed. The _high fields are the largest
  // values of both so far, which the program may reset.
  std::size_t graph_used = 0;
  std::size_t graph_reserved = 0;
  std::size_t graph_used_high = 0;
  std::size_t graph_reserved_high = 0;
};

// All objects of one type T that have handles. A handle is an object's address; it is live until
// the object is removed, and stale afterwards. Removed objects stay allocated, so that stale
// handles are recognised.
template <typename T>
class Handles {
 public:
  // Returns the object of a handle. Null if the value is no handle of this type, or if its object
  // was removed. `Handle`: the handle's type, such as CUstream.
  template <typename Handle>
  T* find(Handle handle) {
    T* object = reinterpret_cast<T*>(handle);
    return live_.count(object) != 0 ? object : nullptr;
  }
  // Adds an object, whose handle becomes live. Returns the object, which this table owns.
  T* add(std::unique_ptr<T> object) {
    T* raw = object.get();
    live_.insert(raw);
    kept_.push_back(std::move(object));
    return raw;
  }
  // True if the value is or was a handle of this type.
  template <typename Handle>
  bool was(Handle handle) const {
    const T* const object = reinterpret_cast<T*>(handle);
    for (const auto& kept : kept_) {
      if (kept.get() == object) return true;
    }
    return false;
  }
  // Makes the object's handle stale.
  void remove(T* object) { live_.erase(object); }
  // Makes the handle of an object that was removed live again.
  void revive(T* object) { live_.insert(object); }
  // Returns all objects with live handles.
  const std::unordered_set<T*>& all() const { return live_; }

 private:
  std::unordered_set<T*> live_;
  std::vector<std::unique_ptr<T>> kept_;  // All objects that were ever added.
};

}  // namespace cuwarden::simulated_gpu
