// The ledger's file, or the memory in its stead, divided into regions: tables of rows, and heaps of
// bytes. A region grows in steps: its pages are made writable before a row in them is used. If the
// file cannot grow, the rest of the region is in memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/ledger/format/geometry.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"
#include "runtime_hooks/ledger/storage/backing_file.hpp"

namespace cuwarden::ledger {

// The file of one ledger as everyone may use it: its path, its bytes, its header, and the room for
// more rows. Only Storage, which the tables have, hands out rows. All threads may call the
// functions at any time after create().
class GrowingFile : public BackingFile {
 public:
  // Returns the header of the ledger, which the caller may change.
  Header& header() const noexcept { return *reinterpret_cast<Header*>(base()); }
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
  // Doubles the writable part of each region (table or heap of bytes), up to the region's capacity;
  // adds at least 16 KiB. Rows in this part then need no system call, so that a thread that may
  // soon be forbidden system calls (by a seccomp filter) can go on recording. A region that cannot
  // grow stays as it is.
  void make_room_ahead() noexcept;

 protected:
  // Makes the ledger's file, or anonymous memory in the file's stead (reason_ledger_in_memory).
  // Divides it into regions, and fills in the header's fields about the layout. Returns false if
  // there is no memory.
  bool create(const BackingRequest&) noexcept;
  // Makes the first `bytes` bytes of the region (table or heap of bytes) writable, and returns
  // true. Returns false if these bytes are not writable yet and there is no room, the region's lock
  // cannot be had (reason_recording_stopped), or the thread is confined by seccomp
  // (reason_confined). If the region had to go on in memory, adds reason_ledger_partly_in_memory.
  bool make_ready(RegionId, std::uint64_t bytes) noexcept;
  // Returns true if the first `bytes` bytes of the region (table or heap of bytes) are writable
  // already, so that make_ready() needs no system call.
  bool is_ready(RegionId id, std::uint64_t bytes) const noexcept {
    return bytes <= growths_[index_of(id)].ready.load(std::memory_order_acquire);
  }
  // Returns the address of the region's first byte.
  std::byte* start(RegionId id) const noexcept { return starts_[index_of(id)]; }

 private:
  // The state of the growth of one region (table or heap of bytes).
  struct Growth {
    std::atomic<std::uint64_t> ready{0};  // bytes from the region's start that are writable
    // Size in bytes to which the region can grow. Becomes equal to `ready`, the writable bytes,
    // once the region could grow neither in the file nor in memory.
    std::atomic<std::uint64_t> capacity{0};
    FutexLock lock;        // held while the region grows
    bool in_file = false;  // true as long as the region grows in the file, not in memory
  };
  // Copies to the ledger's header the step of growing that failed last, from
  // BackingFile::refused_growth(). Does nothing if none has failed.
  void note_refusal() noexcept;

  std::array<std::byte*, region_count> starts_{};  // address of each region
  std::array<Growth, region_count> growths_;       // growth of each region
};

// Holds one of the ledger's locks for a scope. Converts to false if FutexLock::lock() failed, in
// most cases because another holder has kept the lock for more than ten seconds. The ledger then
// gets reason_recording_stopped, and the caller must return without changing anything.
class [[nodiscard]] LedgerLocked : public Locked {
 public:
  // Takes `lock`, one of the locks of the ledger in `file`. Both must outlive the object.
  LedgerLocked(FutexLock& lock, GrowingFile& file) noexcept : Locked(lock) {
    if (!*this) file.add_reason(reason_recording_stopped);
  }
};

}  // namespace cuwarden::ledger
