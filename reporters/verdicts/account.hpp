// The used bytes of a device, divided by what holds them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime_hooks/core/kind.hpp"

namespace cuwarden {

// Holders of a device's memory other than this process's live allocations. The names are those of
// the report's table `accounts`.
enum class Holder : std::uint8_t {
  // Unused memory in slabs (2 MiB pages of small requests) with a live piece.
  slab_waste,
  // Bytes by which the driver rounded up live requests for linear memory (cuMemAlloc).
  rounding_waste,
  mempool_idle,  // unused memory of memory pools (CUmemoryPool) and of graphs
  pool,          // memory that cuwarden's own pool holds and that no allocation has
  // Memory of other processes that NVML lists, without the memory of theirs that this process has
  // opened (Kind::imported).
  other_processes,
  // Contexts of this process, without their code, local memory, heaps, streams and graphs. A first
  // context of unknown size is left out. Memory that other processes held when the first context
  // was made may be included (ImplicitBytes::contexts()).
  context,
  modules,       // loaded code and constants of this process, without those in `libraries`
  local_memory,  // memory that the driver set aside for kernels' local memory
  heap,          // memory for the heap of device-side malloc
  streams,       // streams of this process, without those in `libraries`
  // Executable graphs, without those in `libraries`, and without the memory of their memory nodes.
  graphs,
  libraries,   // streams, code and executable graphs of known libraries, such as NCCL
  page_cache,  // the host's page cache, on a device that shares its memory with the host
};

// The used bytes of a device, divided into items. An item is the live memory of one kind, or the
// memory of one Holder.
class Account {
 public:
  // An item's name in the report, such as "live_device" or "context", and its bytes.
  using Item = std::pair<std::string, std::uint64_t>;
  // Bytes of one device's live allocations that are spilled: they lie in host memory.
  struct Spilled {
    // bytes: all spilled bytes. in_stream_order_bytes: the part of them in stream-ordered
    // allocations (cuMemAllocAsync). The rest is in linear memory (cuMemAlloc).
    std::uint64_t bytes = 0, in_stream_order_bytes = 0;
  };

  // Makes an account without items. `used_bytes`: all used bytes of the device.
  explicit Account(std::uint64_t used_bytes)
      : unexplained_(static_cast<std::int64_t>(used_bytes)) {}

  // Adds an item to the account: the bytes of the device that the holder has. To be called once for
  // each holder. Does nothing if `bytes` is 0, or more than any device has (2^53).
  void add(Holder, std::uint64_t bytes);
  // Adds the live allocations of a kind as an item. `bytes`: all bytes of these allocations.
  // Spilled: the spilled bytes of all kinds on the device, of which those of this kind are
  // subtracted. Does nothing if no bytes are left, or more than 2^53.
  void add_live(Kind, std::uint64_t bytes, const Spilled&);
  // Bytes of loaded code, of streams and of executable graphs on the device.
  struct Objects {
    std::uint64_t modules = 0;  // bytes of loaded code
    std::uint64_t streams = 0;  // bytes of streams
    std::uint64_t graphs = 0;   // bytes of executable graphs
  };
  // Adds the items `modules`, `streams`, `graphs` and `libraries`. `all`: the bytes of all objects;
  // `of_libraries`: the parts of them that calls of known libraries took, which are the item
  // `libraries` instead. A part may be larger than the whole, since the two may have been counted
  // one after the other; what exceeds the whole is left out.
  void add_objects(const Objects& all, const Objects& of_libraries);
  // Adds the item `other_processes`. `bytes`: bytes of the device that other processes hold, as
  // NVML lists them. The live bytes of Kind::imported, which are memory of other processes that
  // this process opened, are subtracted: they are an item already. To be called after add_live().
  // Does nothing if no bytes are left, or if `bytes` is more than 2^53.
  void add_other_processes(std::uint64_t bytes);

  // Returns the bytes of the device that the holder has; 0 if they were not added.
  std::uint64_t of(Holder) const noexcept;
  // Returns the bytes of live allocations of one kind of memory, without spilled ones; 0 if they
  // were not added.
  std::uint64_t live(Kind) const noexcept;
  // Returns the sum of the live bytes of all kinds in the account, without spilled memory and
  // without memory of other processes that this process opened (Kind::imported).
  std::uint64_t own() const noexcept;
  // Returns the bytes of the device that no allocation call asked for: those of contexts, code,
  // kernels' local memory, the device heap, streams and executable graphs.
  std::uint64_t implicit() const noexcept;
  // Returns the device's used bytes minus the sum of the items; below 0 if the sum is more.
  std::int64_t unexplained() const noexcept { return unexplained_; }
  // Returns the items in the order in which they were added.
  std::vector<Item> items() const;

 private:
  // The bytes of a Holder, or of the live memory of a kind.
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
