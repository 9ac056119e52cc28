// The ledger's table of frameworks, such as PyTorch. A framework takes memory from CUDA and hands
// it out in blocks; the table has the figures that it gives of this memory.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"
#include "runtime_hooks/ledger/storage/process_time.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"

namespace cuwarden::ledger {

// Stores the figures that frameworks, such as PyTorch, give of their own memory. All threads may
// call the functions at any time. Only one thread at a time may call pytorch() for a device.
class Frameworks {
 public:
  // `storage`: the memory of the ledger; `time`: its clock. Both must outlive the object.
  Frameworks(Storage& storage, const ProcessTime& time) noexcept : storage_(storage), time_(time) {}

  // Stores the latest figures of this memory. They replace earlier figures of the same memory,
  // except for the peak, which only rises. Figures of new memory are dropped, and the ledger does
  // not say so, if the table has no room or would have to grow in a confined thread (seccomp).
  void store(const FrameworkMemory&, const FrameworkFigures&) noexcept;

  // Stores PyTorch's figures of the device. `reserved_bytes`: bytes that PyTorch has taken from
  // CUDA. `allocated_bytes`: bytes of these that are in blocks that it has handed out. PyTorch's
  // other figures of the device become unknown, except for the peak. To be called whenever one of
  // the two changes, by one thread at a time for each device. Ignores devices with an ordinal above
  // 63.
  void pytorch(DeviceOrdinal device, std::uint64_t reserved_bytes,
               std::uint64_t allocated_bytes) noexcept {
    const auto index = static_cast<std::uint32_t>(device.value);
    if (index >= pytorch_rows_.size()) return;
    const std::uint32_t row = pytorch_rows_[index].load(std::memory_order_relaxed);
    const FrameworkFigures figures{reserved_bytes, allocated_bytes};
    if (row == 0) return store({.framework = "PyTorch", .device = device}, figures);
    put(this->row(row), figures, time_.recently_ns());
  }
  // Returns reserved_bytes and allocated_bytes as pytorch() or store() was last given them for
  // PyTorch's main pool on the device; all other figures of the result are unknown. Null if there
  // are none, or for an ordinal above 63.
  std::optional<FrameworkFigures> pytorch_on(DeviceOrdinal) const noexcept;

 private:
  // Number of devices that pytorch() accepts: those with an ordinal below it.
  static constexpr std::size_t most_devices = 64;
  // Most rows of the frameworks table that the process may use, without the reserved row 0.
  static constexpr std::uint64_t most_rows = 4096;

  FrameworkPool& row(std::uint64_t number) const noexcept {
    return storage_.rows<FrameworkPool>(RegionId::frameworks)[number];
  }
  std::string_view text(StringRef stored) const noexcept {
    return {storage_.rows<char>(RegionId::strings) + stored.offset, stored.length};
  }
  // Returns the frameworks table's row for this memory of a framework; 0 if there is none. The
  // caller holds lock_.
  std::uint64_t find(const FrameworkMemory&) const noexcept;
  // Replaces the figures of a row, except for the peak, which only rises. `time_ns`: time of the
  // figures, in ns since process start.
  static void put(FrameworkPool&, const FrameworkFigures&, std::uint64_t time_ns) noexcept;

  Storage& storage_;         // the memory of the ledger, with its tables
  const ProcessTime& time_;  // clock of the ledger's times
  FutexLock lock_;           // held while a row is looked for and added
  // Row of the figures of PyTorch's main pool on each device, by ordinal; 0: it has given none.
  std::array<std::atomic<std::uint32_t>, most_devices> pytorch_rows_{};
};

}  // namespace cuwarden::ledger
