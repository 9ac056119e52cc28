// The objects behind the simulated driver's handles (CUstream, CUcontext and others). A handle is
// the object's address. Objects stay allocated after the program has destroyed them, so that the
// use of a stale handle always gives an error. Simulator::mutex guards all objects.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
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

// A green context (CUgreenCtx), which may use a part of a device's multiprocessors. Its handle is
// the object's address.
struct GreenContext {
  // The device, whose primary context the green context retains; not owned.
  Device* device = nullptr;
};

// A stream. Its handle, a CUstream, is the object's address. Kernels are not executed: each only
// puts off the moment until which the stream is busy. Copies and fills are done at once, when the
// program submits them.
struct Stream {
  Context* context = nullptr;  // The context that the stream belongs to.
  unsigned flags = 0;          // CUstream_flags with which the stream was made.
  int priority = 0;            // Priority of the stream: from -5, the highest, to 0.
  unsigned long long id = 0;   // Id that no other stream or context of the process has.
  bool destroyed = false;      // True once the stream or its context was destroyed.
  // The moment at which all work that is queued in the stream is done; it may have passed.
  Clock::time_point busy_until{};
  // The moment at which the stream reaches the last cuMemFreeAsync that the program has queued in
  // it. Time 0 of the clock: none was queued.
  Clock::time_point last_free{};
  // Number of host functions (cuLaunchHostFunc) of the stream that are queued or running now.
  unsigned running_callbacks = 0;
  // Number of host functions that were queued in the stream since it was made. The next one gets
  // this number.
  unsigned long long callbacks_queued = 0;
  // Number of host functions of the stream that have returned since it was made. The function with
  // this number is the next to run.
  unsigned long long callbacks_finished = 0;
  // The capture into a graph in which the stream takes part; null if there is none.
  std::shared_ptr<Capture> capture;
};

// An event. Its handle, a CUevent, is the object's address.
struct Event {
  Context* context = nullptr;  // The context in which the event was made.
  unsigned flags = 0;          // CUevent_flags with which the event was made.
  bool recorded = false;  // True once the event was recorded outside of a capture into a graph.
  // The stream in which the event was last recorded; null: none, or all streams of a context
  // (cuCtxRecordEvent).
  Stream* stream = nullptr;
  Clock::time_point at{};  // The moment at which the recorded event happens, if `recorded` is true.
  // The capture into a graph during which the event was last recorded. Empty if it was recorded
  // outside of a capture, or if that capture has ended.
  std::weak_ptr<Capture> captured;
  // Nodes (Node*) of the graph that the capture `captured` makes. A stream that waits for the event
  // joins that capture, and its next node depends on these nodes.
  std::vector<void*> captured_nodes;
};

// Kinds of memory that the program has allocated or made known to the driver (Range::kind).
enum class RangeKind {
  device,          // Linear device memory, from cuMemAlloc and similar functions, of an array or a
                   // variable.
  stream_ordered,  // A block of a memory pool, from cuMemAllocAsync.
  managed,         // Managed memory, from cuMemAllocManaged.
  pinned,          // Page-locked host memory, from cuMemHostAlloc.
  registered,      // Host memory of the program that cuMemHostRegister has page-locked.
  mapping,         // Reserved addresses to which cuMemMap has mapped a physical handle.
  imported,        // Memory opened by a handle: an IPC handle or external memory.
  graph,           // Memory from an allocation node of a launched graph.
};

// Value of Range::flags for a range of kind RangeKind::imported that the program may free by
// cuMemFree, such as a mapped buffer of external memory.
constexpr unsigned kImportedFreeable = 1;
// Value of Range::flags for device memory that belongs to an array or to a module's variable: the
// program may not free it by cuMemFree.
constexpr unsigned kArrayMemory = 2;

// A range of addresses that the simulated driver gave to the program, or that the program made
// known to the driver by cuMemHostRegister.
struct Range {
  CUdeviceptr start = 0;      // First address of the range.
  std::size_t requested = 0;  // Bytes of the range that the program asked for.
  // Bytes of the device or the host that this range alone takes. 0 if the range is a part of a
  // slab, of a memory pool or of a physical handle. For kind `imported`: size of the mapped file,
  // which takes no further memory. For kind `graph`: bytes of the range, which
  // Device::graph_reserved counts already.
  std::size_t held = 0;
  RangeKind kind = RangeKind::device;  // Kind of memory in the range.
  Context* context = nullptr;          // The context with which the range ends; null: no context.
  Device* device = nullptr;            // The device that has the memory; null for host memory.
  // For page-locked, registered and managed memory, the flags of the call that made the range.
  // kImportedFreeable for imported ranges that the program may free by cuMemFree; kArrayMemory for
  // device memory of arrays and of modules' variables; otherwise 0.
  unsigned flags = 0;
  unsigned long long buffer_id = 0;  // CU_POINTER_ATTRIBUTE_BUFFER_ID: unique in this process.
  bool in_slab = false;              // True if the range is a part of a slab, a 2 MiB page.
  // Value of CU_POINTER_ATTRIBUTE_SYNC_MEMOPS; stored, but without effect.
  bool sync_memops = false;
  // Only for kind `stream_ordered`: the memory pool that owns the block.
  MemoryPool* pool = nullptr;
  PhysicalHandle* physical = nullptr;  // Only for kind `mapping`: the handle that is mapped.
  // Only for kind `mapping`: the devices that may read. Bit n stands for the device with ordinal n,
  // bit 63 for the host (kHostBit).
  std::uint64_t readable = 0;
  // Only for kind `mapping`: the devices that may write. Bit n stands for the device with ordinal
  // n, bit 63 for the host (kHostBit).
  std::uint64_t writable = 0;
  // For memory opened from an IPC handle: number of times that the program has opened it, less the
  // number of times that it has closed it. Otherwise 1.
  int references = 1;
  // Only for kind `imported`: bytes from the start of the mapped file to the range's first address.
  std::size_t lead = 0;
  // Only for memory opened from an IPC handle: a number that identifies the memory and the process
  // that made the handle. Otherwise 0.
  unsigned long long source = 0;
};

// Table of the ranges of addresses that the driver gave to the program or that the program
// registered. Finds them by address. Callers hold Simulator::mutex.
class RangeTable {
 public:
  // Adds a copy of the range, with a new buffer_id; replaces an entry that begins at the same
  // address. Returns the entry; the reference is valid until the entry is erased.
  Range& insert(const Range& range);
  // Returns the range that begins at `start`; null if there is none.
  Range* at(CUdeviceptr start);
  // Returns the range that contains the address among the bytes that the program asked for
  // (Range::requested); null if there is none.
  Range* around(CUdeviceptr address);
  // True if a range of the table shares an address with [start, start + size). `size`: bytes.
  bool overlaps(CUdeviceptr start, std::size_t size);
  // Removes the range that begins at `start` from the table, without freeing its memory. Does
  // nothing if no range begins there.
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
  std::map<CUdeviceptr, Range> ranges_;    // All ranges, by start address.
  unsigned long long next_buffer_id_ = 1;  // Range::buffer_id of the next range that is added.
};

// Memory from cuMemAlloc that the program has freed by cuMemFreeAsync. The device memory counts as
// used until the program has synchronised with the stream in which it was freed.
struct DeferredFree {
  Range range;  // A copy of the entry that cuMemFreeAsync has removed from the RangeTable.
  // The stream in which cuMemFreeAsync freed the memory of `range`; not owned, and never null.
  Stream* stream = nullptr;
};

// Device memory that a context has taken for its objects of one kind, such as streams. The driver
// takes whole pages (2 MiB). It keeps the pages of destroyed objects for later objects until the
// context ends (measured).
struct ObjectMemory {
  // Bytes of the context's live objects of one kind, such as streams.
  std::size_t used_bytes = 0;
  // Bytes that the context has for objects of one kind, such as streams: those of its start, and
  // whole pages that it has taken from the device. Pages of destroyed objects are included. Never
  // falls.
  std::size_t held_bytes = 0;
};

// A context. Its handle, a CUcontext, is the object's address.
struct Context {
  Device* device = nullptr;  // The device on which the context was made; not owned.
  bool primary = false;      // True for the device's primary context.
  bool destroyed = false;    // True once the context was destroyed.
  unsigned flags = 0;        // CUctx_flags with which the context was made.
  // CUDA version of the function that made the context, such as 3020 for cuCtxCreate_v2; the result
  // of cuCtxGetApiVersion.
  unsigned api_version = 3020;
  unsigned long long id = 0;  // Id that no other context or stream of the process has.
  // Bytes of the device that the driver itself uses for the context; allocations of the program are
  // not counted.
  std::size_t overhead = 0;
  // Bytes of local memory of each thread; the context has them for as many threads as the device
  // can run at once. Values below 1,024 count as 1,024, which each thread has from the context's
  // start. If local_given_back is true, the context has no local memory.
  std::size_t local_bytes = 0;
  // True while the context has no local memory at all. A failed request for local memory
  // (take_local_memory()) sets this: the context then loses even the part from its start.
  bool local_given_back = false;
  bool device_runtime = false;  // True once the code for device-side malloc is loaded.
  // Device memory that the driver takes for the context's streams, for its instantiated graphs, and
  // for its texture and surface objects.
  ObjectMemory stream_memory, graph_exec_memory, view_memory;
  // True once the context has taken device memory for the heap of device-side malloc.
  bool heap_made = false;
  // Number of threads that wait inside cuMemFree until the context is idle; allocations of linear
  // memory wait until the number is 0.
  unsigned frees_waiting = 0;
  SlabHeap slabs;  // The 2 MiB pages from which small allocations of the context are cut.
  Stream legacy;   // The context's legacy default stream.
  // Default streams of single threads (CU_STREAM_PER_THREAD), by kernel thread id.
  std::map<int, std::unique_ptr<Stream>> per_thread;
  std::set<Stream*> streams;  // Live streams that the program has made; not owned.
  // Ordinals of other devices for which the program has enabled peer access
  // (cuCtxEnablePeerAccess); stored, but not checked by copies.
  std::set<int> peers;
  // Memory from cuMemAlloc that was freed by cuMemFreeAsync in streams with which the program has
  // not synchronised since.
  std::vector<DeferredFree> deferred;
  // Limits of the context (cuCtxSetLimit), by CUlimit. Contains every limit that the simulated
  // driver supports; others are refused.
  std::map<int, std::size_t> limits;
  // Value of cuCtxSetCacheConfig; stored, but without effect.
  CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
  // Value of cuCtxSetSharedMemConfig; stored, but without effect.
  CUsharedconfig shared_config = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
};

// A simulated device that the program in this process can use, with this process's use of its
// memory.
struct Device {
  // `number`: CUDA ordinal in this process. `board_number`: number of the device in the machine, 0
  // to 63. `memory`: bytes of the device. `others`: bytes that another, made-up process holds.
  // `processes`: tells how much memory other processes hold; outlives the object.
  Device(int number, int board_number, std::size_t memory, std::size_t others,
         DeviceShare& processes)
      : ordinal(number),
        board(board_number),
        share(processes),
        capacity(memory),
        other_process(others),
        arena(memory) {}

  // Returns the bytes of the device that neither a process nor the host's page cache holds.
  std::size_t free_bytes() const {
    const std::size_t taken = used + other_process + share.used_by_others(board) + page_cache;
    return taken < capacity ? capacity - taken : 0;
  }
  // Counts `bytes` of the device as used by this process, and tells this to the processes that
  // share the device. Returns false, and counts nothing, if fewer bytes are free, or if the process
  // would hold more than process_limit or cgroup_limit.
  bool charge(std::size_t bytes) {
    const DeviceShare::Taking taking(share);
    const std::size_t limit = std::min(process_limit, cgroup_limit);
    if (bytes > free_bytes() || bytes > limit - std::min(used, limit)) return false;
    used += bytes;
    share.publish(board, used);
    return true;
  }
  // Counts `bytes` of the device, which charge() has counted as used, as free again, and tells this
  // to the processes that share the device.
  void refund(std::size_t bytes) {
    used -= bytes;
    share.publish(board, used);
  }

  int ordinal;           // CUDA ordinal of the device in this process.
  int board;             // Number of the device in the machine, from 0.
  DeviceShare& share;    // Tells how much memory of the device other processes hold; not owned.
  std::size_t capacity;  // Size of the device's memory in bytes.
  std::size_t other_process;  // Bytes that a made-up process holds (CUWARDEN_SIM_OTHER_PROCESS).
  // Most bytes of the device that this process may hold, set by an MPS server; SIZE_MAX: no limit.
  std::size_t process_limit = SIZE_MAX;
  // Most bytes of the device that this process's cgroup may hold; SIZE_MAX: no limit. Other
  // processes of the cgroup are not counted.
  std::size_t cgroup_limit = SIZE_MAX;
  // Bytes of the device that the host's page cache takes, if device and host share their memory;
  // otherwise 0.
  std::size_t page_cache = 0;
  std::size_t used = 0;  // Bytes of the device that this process holds.
  AddressArena arena;    // Gives out addresses for the memory of the device.
  // True once a context was made on the device. The first context takes more memory than later
  // ones.
  bool had_context = false;
  Context* primary = nullptr;  // The device's primary context; null if there is none.
  // References to the primary context: number of cuDevicePrimaryCtxRetain calls less number of
  // cuDevicePrimaryCtxRelease calls since it was made. Each live green context of the device has
  // one, too.
  unsigned primary_references = 0;
  unsigned primary_flags = 0;  // CUctx_flags with which the next primary context is made.
  // Bytes of host memory that are mapped into the device's addresses.
  std::size_t host_mapped = 0;
  // Bytes of the device that the page tables for the mapped host memory take.
  std::size_t host_tables = 0;
  MemoryPool* default_pool = nullptr;  // The memory pool that the device has from the start.
  MemoryPool* current_pool = nullptr;  // The memory pool that cuMemAllocAsync uses.
  // Bytes of the device in allocations that launched graphs have made and that are not freed.
  std::size_t graph_used = 0;
  // Bytes of the device that the driver holds for allocations of graphs: graph_used, and bytes that
  // it keeps for later launches until trim_device() frees them.
  std::size_t graph_reserved = 0;
  // Largest value of graph_used at an allocation, since the program last reset it
  // (cuDeviceSetGraphMemAttribute).
  std::size_t graph_used_high = 0;
  // Largest value of graph_reserved since the program last reset it (cuDeviceSetGraphMemAttribute).
  std::size_t graph_reserved_high = 0;
};

// Table of all objects of one type T that the program knows by handles. A handle is the address of
// its object. The handle is live until the object is removed, and stale afterwards. Removed objects
// stay allocated, so that no later object gets the address of a stale handle.
template <typename T>
class Handles {
 public:
  // Returns the object of a live handle; null if the handle is stale or belongs to no object of
  // this table. `Handle`: type of the handle, such as CUstream.
  template <typename Handle>
  T* find(Handle handle) {
    T* object = reinterpret_cast<T*>(handle);
    return live_.count(object) != 0 ? object : nullptr;
  }
  // Adds an object, and makes its address a live handle. Returns the object, which this table owns
  // from now on.
  T* add(std::unique_ptr<T> object) {
    T* raw = object.get();
    live_.insert(raw);
    kept_.push_back(std::move(object));
    return raw;
  }
  // True if `handle` is a live or a stale handle of this table.
  template <typename Handle>
  bool was(Handle handle) const {
    const T* const object = reinterpret_cast<T*>(handle);
    for (const auto& kept : kept_) {
      if (kept.get() == object) return true;
    }
    return false;
  }
  // Makes the object's handle stale; the object stays allocated.
  void remove(T* object) { live_.erase(object); }
  // Undoes remove(): makes the object's stale handle live again.
  void revive(T* object) { live_.insert(object); }
  // Returns all objects with live handles.
  const std::unordered_set<T*>& all() const { return live_; }

 private:
  std::unordered_set<T*> live_;  // Objects whose handles are live; owned by kept_.
  // All objects that were ever added, including the removed ones; they are never freed.
  std::vector<std::unique_ptr<T>> kept_;
};

}  // namespace cuwarden::simulated_gpu
