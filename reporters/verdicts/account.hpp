// The used bytes of a device, divided by what holds them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime_hooks/core/kind.hpp"

namespace cuwarden {

// Holders of a device's memory beside live allocations. The names are those of the report's table
// `accounts`.
enum class Holder : std::uint8_t {
  slab_waste,       // freed memory that is locked in slabs
  rounding_waste,   // bytes that rounding added to requests
  mempool_idle,     // unused memory of memory pools (CUmemoryPool) and of graphs
  pool,             // unused memory of cuwarden's own pool
  other_processes,  // processes that NVML lists
  context,          // contexts of this process
  modules,          // code and constants
  local_memory,     // local memory of kernels
  heap,             // the heap of device-side malloc
  streams,          // streams
};

// The used bytes of a device, divided into items. An item is the live memory of one kind, or the
// memory of one Holder.
class Account {
 public:
  // An item's name in the report, such as "live_device" or "context", and its bytes.
  using Item = std::pair<std::string, std::uint64_t>;
  // Bytes of live device allocations that are spilled, that is, lie in host memory.
  struct Spilled {
    // Spilled bytes of all kinds; the part of them in stream-ordered allocations.
    std::uint64_t bytes = 0, in_stream_order_bytes = 0;
  };

  // `used_bytes`: all used bytes of the device.
  explicit Account(std::uint64_t used_bytes)
      : unexplained_(static_cast<std::int64_t>(used_bytes)) {}

  // Adds an item. Does nothing if `bytes` is 0, or more than any device has.
  void add(Holder, std::uint64_t bytes);
  // Adds the live allocations of a kind as an item. `bytes`: all bytes of these allocations, from
  // which their spilled part is subtracted.
  void add_live(Kind, std::uint64_t bytes, const Spilled&);
  // Adds the item `other_processes`. `bytes`: bytes of the processes that NVML lists. They include
  // memory that this process opened. Such memory is an item of live memory already, so it is
  // subtracted. To be called after add_live().
  void add_other_processes(std::uint64_t bytes);

  // Returns the bytes of an item; 0 if it was not added.
  std::uint64_t of(Holder) const noexcept;
  // Returns the live bytes of one kind of memory; 0 if they were not added.
  std::uint64_t live(Kind) const noexcept;
  // Returns the live bytes of all kinds that this process allocated itself.
  std::uint64_t own() const noexcept;
  // Returns the bytes that no allocation call asked for: those of contexts, code, kernels' local
  // memory, the device heap and streams.
  std::uint64_t implicit() const noexcept;
  // Returns the used bytes minus the sum of the items; below 0 if the sum is more.
  std::int64_t unexplained() const noexcept { return unexplained_; }
  // Returns the items in the order in which they were added.
  std::vector<Item> items() const;

 private:
  // The bytes of a Holder, or of the live memory of a kind.
  struct Entry {
    bool is_live = false;
    Holder holder{};  // meaningless if is_live
    Kind kind{};      // meaningless unless is_live
    std::uint64_t bytes = 0;
  };

  void add(const Entry&);

  std::vector<Entry> entries_;
  std::int64_t unexplained_;
};

}  // namespace cuwarden
