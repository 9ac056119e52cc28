// The used bytes of a device, divided by what holds them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime_hooks/core/kind.hpp"

namespace cuwarden {

// Kinds of holders of a device's memory, besides the live allocations of this process. Their names
// are those of items in the report's table `accounts`.
enum class Holder : std::uint8_t {
  // Unused memory in slabs (the driver's 2 MiB pages of small requests) in which an allocation is
  // live.
  slab_waste,
  // Bytes by which the driver rounded up live requests for linear memory (cuMemAlloc).
  rounding_waste,
  mempool_idle,  // unused memory of memory pools (CUmemoryPool) and of graphs
  pool,          // memory that cuwarden's own pool holds and that no allocation has
  // Memory of other processes that NVML lists. The part that this process has opened is left out:
  // it is live memory of Kind::imported.
  other_processes,
  // Contexts of this process, without their code, local memory, heaps, streams and graphs. If the
  // size of the process's first context is unknown, that context is left out. Memory that other
  // processes held when the first context was made may be included (ImplicitBytes::contexts()).
  context,
  modules,       // loaded code and constants of this process, without the part in `libraries`
  local_memory,  // memory that the driver set aside for kernels' local memory
  heap,          // memory for the heap of device-side malloc
  streams,       // streams of this process, without the part in `libraries`
  // Executable graphs, without those in `libraries`. Memory that graphs allocate for their memory
  // nodes is left out: it is live memory of Kind::graph.
  graphs,
  libraries,   // streams, code and executable graphs of known libraries, such as NCCL
  page_cache,  // the host's page cache, on a device that shares its memory with the host
};

// The used bytes of a device, divided into items. An item is the memory that one Holder has, or the
// live memory of one Kind.
class Account {
 public:
  // An item's name in the report, such as "live_device" or "context", and its bytes.
  using Item = std::pair<std::string, std::uint64_t>;
  // Bytes of one device's live allocations that are spilled: they lie in host memory.
  struct Spilled {
    // bytes: all spilled bytes. in_stream_order_bytes: the part of `bytes` that belongs to
    // stream-ordered allocations (cuMemAllocAsync). The rest belongs to linear memory (cuMemAlloc).
    std::uint64_t bytes = 0, in_stream_order_bytes = 0;
  };

  // Makes an account without items. `used_bytes`: all used bytes of the device.
  explicit Account(std::uint64_t used_bytes)
      : unexplained_(static_cast<std::int64_t>(used_bytes)) {}

  // Adds an item: the bytes of the device that the holder has. To be called at most once for each
  // holder. Does nothing if `bytes` is 0, or more than any device has (2^53).
  void add(Holder, std::uint64_t bytes);
  // Adds an item: the bytes that live allocations of a kind have on the device. `bytes`: all bytes
  // of these allocations, spilled ones included. `Spilled`: spilled bytes of all kinds; those of
  // this kind are subtracted from `bytes`. Does nothing if the difference is 0, or more than 2^53.
  void add_live(Kind, std::uint64_t bytes, const Spilled&);
  // Bytes of loaded code, of streams and of executable graphs on the device.
  struct Objects {
    std::uint64_t modules = 0;  // bytes of loaded code
    std::uint64_t streams = 0;  // bytes of streams
    std::uint64_t graphs = 0;   // bytes of executable graphs
  };
  // Adds the items `modules`, `streams`, `graphs` and `libraries`. `all`: bytes of all these
  // objects on the device. `of_libraries`: the part of `all` that calls of known libraries took; it
  // becomes the item `libraries`. If a part is larger than the whole, since the two were counted
  // one after the other, it is cut to the whole.
  void add_objects(const Objects& all, const Objects& of_libraries);
  // Adds the item `other_processes`. `bytes`: bytes of the device that other processes hold, as
  // NVML lists them. Memory of theirs that this process opened is subtracted, because it is an item
  // already (Kind::imported): so add_live() is to be called first. Does nothing if no bytes are
  // left, or if `bytes` is more than 2^53.
  void add_other_processes(std::uint64_t bytes);

  // Returns the bytes of the holder's item; 0 if there is no such item.
  std::uint64_t of(Holder) const noexcept;
  // Returns the bytes of the item of this kind's live allocations, without spilled bytes; 0 if
  // there is no such item.
  std::uint64_t live(Kind) const noexcept;
  // Returns the sum of the live bytes of all kinds in the account, without memory of other
  // processes that this process opened (Kind::imported).
  std::uint64_t own() const noexcept;
  // Returns the bytes of this process's implicit memory on the device, which no allocation call
  // asked for: contexts, code, kernels' local memory, the device heap, streams and executable
  // graphs, those of libraries included.
  std::uint64_t implicit() const noexcept;
  // Returns the device's used bytes minus the sum of the items; below 0 if the sum is more.
  std::int64_t unexplained() const noexcept { return unexplained_; }
  // Returns the items in the order in which they were added.
  std::vector<Item> items() const;

 private:
  // One item: the bytes of a Holder, or of the live memory of a kind.
  struct Entry {
    bool is_live = false;  // true for the live memory of a kind; false for a Holder's bytes
    // Holder of the bytes. Meaningless if is_live is true: then `kind` says what the bytes are.
    Holder holder{};
    Kind kind{};              // kind of the live memory; meaningless if is_live is false
    std::uint64_t bytes = 0;  // bytes of the device, from 1 to 2^53
  };

  // Adds an item and subtracts its bytes from unexplained_. Does nothing if the bytes are 0 or more
  // than 2^53.
  void add(const Entry&);

  std::vector<Entry> entries_;  // items in the order in which they were added
  // Used bytes of the device minus the sum of the items; below 0 if the sum is more.
  std::int64_t unexplained_;
};

}  // namespace cuwarden
