// Hands out rows and bytes of the ledger's regions. A region grows in steps: its pages are made
// writable before a row in them is handed out. If the file cannot grow, the rest of the region is
// in memory. Rows are zero when they are handed out, and never move.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"
#include "runtime_hooks/ledger/storage/backing_file.hpp"

namespace cuwarden::ledger {

class Storage {
 public:
  // Makes the file or memory and its regions; returns false if there is no memory.
  bool create(const BackingRequest&) noexcept;

  Header& header() const noexcept { return *reinterpret_cast<Header*>(file_.base()); }
  BackingFile& file() noexcept { return file_; }
  const BackingFile& file() const noexcept { return file_; }

  // Returns the array of a region's rows. Only rows that allocate() gave out may be read or
  // written.
  template <class T>
  T* rows(RegionId id) const noexcept {
    return reinterpret_cast<T*>(starts_[index_of(id)]);
  }

  // Hands out `count` rows in sequence. Returns the number of the first one, or 0 if the region is
  // full. Row 0 is never handed out (the hooks table is laid out by its own function below).
  std::uint64_t allocate(RegionId, std::uint64_t count) noexcept;
  // Hands out the rows of the hooks table, from row 0 on; returns false if there is no room.
  bool allocate_hooks(std::uint64_t count) noexcept;
  // Makes room in each region for as many rows as it has, and for some rows at least.
  void make_room_ahead() noexcept;
  // Stores a copy of the text; returns an empty text if there is no room.
  StringRef store(std::string_view) noexcept;

  // Returns the number of rows for which there is room, including row 0.
  std::uint64_t capacity(RegionId id) const noexcept {
    const RegionExtent& extent = file_.geometry().regions[index_of(id)];
    return extent.capacity_bytes / extent.row_bytes;
  }
  std::uint64_t used(RegionId id) const noexcept {
    return header().regions[index_of(id)].used.load(std::memory_order_acquire);
  }
  void add_reason(Reason reason) noexcept {
    const std::uint32_t present = header().reasons.load(std::memory_order_relaxed);
    // If one of these reasons is set, it is the cause of a full table.
    constexpr std::uint32_t causes = reason_recording_stopped | reason_confined;
    if (reason == reason_ledger_full && (present & causes) != 0) return;
    if ((present & reason) == 0) header().reasons.fetch_or(reason, std::memory_order_relaxed);
  }

 private:
  struct Fill {
    std::atomic<std::uint64_t> ready{0};     // bytes from the region's start that may be touched
    std::atomic<std::uint64_t> capacity{0};  // shrinks when neither file nor memory is to be had
    FutexLock lock;
    bool in_file = false;
  };
  bool make_ready(RegionId, std::uint64_t bytes) noexcept;
  // Notes in the header the operation that the kernel refused when the ledger was to grow.
  void note_refusal() noexcept;

  BackingFile file_;
  std::array<std::byte*, region_count> starts_{};
  std::array<Fill, region_count> fills_;
};

// Holds one of the ledger's locks for a scope. If the lock was given up, the ledger cannot be kept
// up to date any more, which is noted in it; the caller must then return without changing anything.
class [[nodiscard]] LedgerLocked : public Locked {
 public:
  LedgerLocked(FutexLock& lock, Storage& storage) noexcept : Locked(lock) {
    if (!*this) storage.add_reason(reason_recording_stopped);
  }
};

}  // namespace cuwarden::ledger
