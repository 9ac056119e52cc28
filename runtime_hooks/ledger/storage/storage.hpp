// Hands out rows of the ledger's regions: tables of rows, or heaps of bytes (rows of one byte).
// Rows are zero when they are handed out, and never move.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "runtime_hooks/ledger/format/geometry.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"

namespace cuwarden::ledger {

// The file of one ledger as its tables use it: they store their rows in its regions (RegionId). All
// threads may call the functions at any time after create().
class Storage : public GrowingFile {
 public:
  using GrowingFile::create;

  // Returns the address of row 0 of a region (table or heap of bytes), from which the rows follow
  // as an array. Only rows that allocate() or allocate_hooks() has handed out may be read or
  // written.
  template <class T>
  T* rows(RegionId id) const noexcept {
    return reinterpret_cast<T*>(start(id));
  }

  // Hands out `count` neighbouring rows of the region, filled with zeros. A row of a heap is one
  // byte. Returns the number of the first of these rows; 0 if there is no room or the region cannot
  // grow. Never hands out row 0, so that 0 can mean no row. Must not be called for the hooks table,
  // which has allocate_hooks(). By itself, adds only the reasons of GrowingFile::make_ready() to
  // the ledger. If the result is 0, and so an allocation, a stack or a name is missing, the caller
  // adds the reason by add_reason().
  std::uint64_t allocate(RegionId, std::uint64_t count) noexcept;
  // True if allocate() hands out a further row of the region without a system call.
  bool has_ready_row(RegionId) const noexcept;
  // Hands out rows 0 to `count` - 1 of the hooks table, filled with zeros. Only this table uses its
  // row 0. Returns false if there is no room or the region cannot grow.
  bool allocate_hooks(std::uint64_t count) noexcept;
  // Stores a copy of the text in the ledger's strings region. Returns a reference to the copy. If
  // there is no room, the reference is to an empty text, and the ledger gets reason_names_missing.
  StringRef store(std::string_view) noexcept;

  // Returns the most rows that the region (table or heap of bytes) can have, including row 0.
  std::uint64_t capacity(RegionId id) const noexcept {
    const RegionExtent& extent = geometry().regions[index_of(id)];
    return extent.capacity_bytes / extent.row_bytes;
  }
  // Returns the number of the row behind the last one that was handed out. A row of a heap is one
  // byte. The unused row 0 counts, so that the result is 1 before the first allocate(). For the
  // hooks table, it is 0 before allocate_hooks().
  std::uint64_t used(RegionId id) const noexcept {
    return header().regions[index_of(id)].used.load(std::memory_order_acquire);
  }
};

}  // namespace cuwarden::ledger
