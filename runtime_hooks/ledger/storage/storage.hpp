// Hands out rows of the ledger's regions: tables of rows, or heaps of bytes (rows of one byte). A
// region grows in steps: its pages are made writable before a row in them is handed out. If the
// file cannot grow, the rest of the region is in memory. Rows are zero when they are handed out,
// and never move.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"
#include "runtime_hooks/ledger/storage/backing_file.hpp"

namespace cuwarden::ledger {

// The memory of one ledger, which consists of regions: its tables and heaps (RegionId). All threads
// may call the functions at any time after create().
class Storage {
 public:
  // Makes the ledger's file, or anonymous memory in the file's stead (reason_ledger_in_memory).
  // Divides it into regions, and fills in the header's fields about the layout. Returns false if
  // there is no memory.
  bool create(const BackingRequest&) noexcept;

  // Returns the header of the ledger, which the caller may change.
  Header& header() const noexcept { return *reinterpret_cast<Header*>(file_.base()); }
  // Returns the ledger's file, or the memory in its stead.
  BackingFile& file() noexcept { return file_; }
  const BackingFile& file() const noexcept { return file_; }  // The ledger's file or memory.

  // Returns the address of row 0 of a region (table or heap of bytes), from which the rows follow
  // as an array. Only rows that allocate() or allocate_hooks() has handed out may be read or
  // written.
  template <class T>
  T* rows(RegionId id) const noexcept {
    return reinterpret_cast<T*>(starts_[index_of(id)]);
  }

  // Hands out `count` neighbouring rows of the region, filled with zeros. A row of a heap is one
  // byte. Returns the number of the first of these rows; 0 if there is no room or the region cannot
  // grow. Never hands out row 0, so that 0 can mean no row. Must not be called for the hooks table,
  // which has allocate_hooks(). A caller that gets 0 notes in the ledger, by add_reason(), that
  // something is missing.
  std::uint64_t allocate(RegionId, std::uint64_t count) noexcept;
  // True if allocate() hands out a further row of the region without a system call.
  bool has_ready_row(RegionId) const noexcept;
  // Hands out rows 0 to `count` - 1 of the hooks table, filled with zeros. Only this table uses its
  // row 0. Returns false if there is no room or the region cannot grow.
  bool allocate_hooks(std::uint64_t count) noexcept;
  // Doubles the writable part of each region (table or heap of bytes), up to the region's capacity;
  // adds at least 16 KiB. allocate() then needs no system call to hand out the rows in this part. A
  // region that cannot grow stays as it is.
  void make_room_ahead() noexcept;
  // Stores a copy of the text in the ledger's strings region. Returns a reference to the copy. If
  // there is no room, the reference is to an empty text, and the ledger gets reason_names_missing.
  StringRef store(std::string_view) noexcept;

  // Returns the most rows that the region (table or heap of bytes) can have, including row 0.
  std::uint64_t capacity(RegionId id) const noexcept {
    const RegionExtent& extent = file_.geometry().regions[index_of(id)];
    return extent.capacity_bytes / extent.row_bytes;
  }
  // Returns the number of the row behind the last one that was handed out. A row of a heap is one
  // byte. The unused row 0 counts, so that the result is 1 before the first allocate(). For the
  // hooks table, it is 0 before allocate_hooks().
  std::uint64_t used(RegionId id) const noexcept {
    return header().regions[index_of(id)].used.load(std::memory_order_acquire);
  }
  // Adds to the header a restriction of the ledger or of the recording. Ignores reason_ledger_full
  // if the header has reason_recording_stopped or reason_confined, because these also keep a table
  // from growing.
  void add_reason(Reason reason) noexcept {
    const std::uint32_t present = header().reasons.load(std::memory_order_relaxed);
    // If one of these is in the header already, it explains a full table, too. Then
    // reason_ledger_full is not added.
    constexpr std::uint32_t causes = reason_recording_stopped | reason_confined;
    if (reason == reason_ledger_full && (present & causes) != 0) return;
    if ((present & reason) == 0) header().reasons.fetch_or(reason, std::memory_order_relaxed);
  }

 private:
  // The state of the growth of one region (table or heap of bytes).
  struct Fill {
    std::atomic<std::uint64_t> ready{0};  // bytes from the region's start that are writable
    // Size in bytes to which the region can grow. Becomes equal to `ready`, the writable bytes,
    // once the region could grow neither in the file nor in memory.
    std::atomic<std::uint64_t> capacity{0};
    FutexLock lock;        // held while the region grows
    bool in_file = false;  // true as long as the region grows in the file, not in memory
  };
  // Makes the first `bytes` bytes of the region (table or heap of bytes) writable, and returns
  // true. Returns false if these bytes are not writable yet and there is no room, the region's lock
  // cannot be had, or the thread is confined (seccomp).
  bool make_ready(RegionId, std::uint64_t bytes) noexcept;
  // Copies to the ledger's header the step of growing that failed last, from
  // BackingFile::refused_growth(). Does nothing if none has failed.
  void note_refusal() noexcept;

  BackingFile file_;                               // the ledger's file, or memory in its stead
  std::array<std::byte*, region_count> starts_{};  // address of each region
  std::array<Fill, region_count> fills_;           // state of each region's growth
};

// Holds one of the ledger's locks for a scope. Converts to false if FutexLock::lock() failed, in
// most cases because another holder has kept the lock for more than ten seconds. The ledger then
// gets reason_recording_stopped, and the caller must return without changing anything.
class [[nodiscard]] LedgerLocked : public Locked {
 public:
  // Takes `lock`, one of the locks of the ledger in `storage`. Both must outlive the object.
  LedgerLocked(FutexLock& lock, Storage& storage) noexcept : Locked(lock) {
    if (!*this) storage.add_reason(reason_recording_stopped);
  }
};

}  // namespace cuwarden::ledger
