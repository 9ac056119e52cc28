// The driver's slabs in a ledger's tables, and their worst moment as a reader sees it.
#pragma once

#include <map>

#include "runtime_hooks/ledger/write/allocation_records/record_index.hpp"
#include "runtime_hooks/ledger/write/allocation_records/slab_pages.hpp"
#include "tests/unit/ledger/ledger_parts.hpp"

namespace cuwarden::ledger {

// Number of bytes of a mebibyte, size of a slab, and address of the test's first slab.
inline constexpr std::uint64_t MiB = 1 << 20, page = 2 * MiB, base = 0x7f00'0000'0000;

// Time of the allocations that add() makes: an hour, in nanoseconds since the process's start. The
// ledger may spend a thousandth of the process's time on copies of holders. With an hour, this is
// enough for all copies, also on a slow machine.
inline constexpr std::uint64_t late_ns = 3'600'000'000'000;

// Slabs (2 MiB units that the driver cuts small requests from) in a ledger's tables, and their
// worst moment: the one at which the most bytes were locked, that is, freed in slabs that are
// partly live.
class SlabPagesTest : public LedgerParts {
 protected:
  SlabPagesTest() { EXPECT_TRUE(slabs.create()); }
  // Returns the worst moment of a device's memory: that at which the most bytes were freed, but in
  // slabs that are partly live. `row`: the row of its series.
  SeriesView::Worst worst(std::uint64_t row = 1) { return reader().series(row).value().worst; }
  // Returns the slabs with live allocations at a worst moment, by their addresses. `version`:
  // number of that moment (SeriesView::Worst::version).
  std::map<std::uint64_t, SlabContents> pages_at_worst(std::uint32_t version) {
    std::map<std::uint64_t, SlabContents> pages;
    const Reader all = reader();
    for (std::uint64_t row = 1; row < all.rows(RegionId::slab_pages); ++row) {
      const auto found = all.slab_page(row, version);
      if (found && found->contents.count > 0) pages[found->address.value] = found->contents;
    }
    return pages;
  }

  // Adds an allocation of the group to the slabs, and its record.
  void add(GroupId in, std::uint64_t address, std::uint64_t bytes) {
    slabs.allocated(in, {address}, bytes, late_ns);
    RecordFields fields;
    fields.group = in;
    fields.bytes = {bytes};
    records.insert(Space::pointer, {address}, fields);
  }

  SlabPages slabs{storage, thread_shards};  // the ledger's slabs
  RecordIndex records{storage};             // the records of live allocations
};

}  // namespace cuwarden::ledger
