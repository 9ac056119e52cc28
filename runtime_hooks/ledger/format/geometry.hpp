// The division of a ledger's file into regions, and the checksum over the header's constant fields.
// The writer lays a ledger out by these rules. A reader believes the header's numbers only as far
// as they lie within the file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/ledger/format/layout.hpp"

namespace cuwarden::ledger {

// Largest size of a ledger's sparse file in bytes. The arguments of Writer::create() or a limit of
// the process may make the file smaller.
inline constexpr std::uint64_t default_total_bytes = std::uint64_t{8} << 30;
// Least useful size of a ledger's file in bytes. If RLIMIT_FSIZE allows less, the ledger is kept in
// anonymous memory, where it can be larger. If other limits keep it as small there, the ledger gets
// the small file. With vm.overcommit_memory=2, this is also the largest size of a ledger in memory.
inline constexpr std::uint64_t smallest_useful_file_bytes = std::uint64_t{64} << 20;

// The part of a ledger's file that one region (a table, or a heap of bytes) occupies: its offset in
// the file, its reserved size, and the size of one row. All are in bytes; a heap has rows of 1
// byte.
struct RegionExtent {
  // Start of the region in the ledger's file, and size reserved for the region; both in bytes.
  std::uint64_t offset = 0, capacity_bytes = 0;
  std::uint32_t row_bytes = 0;  // size of a row in bytes; 1 for a heap of bytes
};

// The division of a ledger's file among its regions (tables and heaps of bytes).
struct Geometry {
  std::array<RegionExtent, region_count> regions;  // each region's extent, at index_of(its id)
  std::uint64_t total_bytes = 0;  // size of the ledger's file; 0: no division fits the limit
};

// Returns the region's index in Geometry::regions and Header::regions.
constexpr std::size_t index_of(RegionId id) { return static_cast<std::size_t>(id); }

// Returns the number of the region's first row (or byte) that may hold data. Row 0 is reserved, so
// that a row number of 0 means none; only the hooks table uses row 0.
constexpr std::uint64_t first_row(RegionId id) { return id == RegionId::hooks ? 0 : 1; }

// Returns the size of the region's rows in bytes; 1 for a heap of bytes.
std::uint32_t row_bytes_of(RegionId) noexcept;

// Returns the division of a ledger's file of about `total_bytes` among its regions. `hooks`: number
// of rows that the hooks table needs. Each region has room for a few rows at least, so the result's
// file may be larger than `total_bytes`.
Geometry plan_geometry(std::uint64_t total_bytes, std::size_t hooks) noexcept;

// Returns the division of the largest ledger file that fits into `limit_bytes`. The sizes that are
// tried begin with default_total_bytes, and each is half of the one before. `hooks`: number of rows
// that the hooks table needs. The result's total_bytes is 0 if nothing fits.
Geometry largest_geometry(std::uint64_t limit_bytes, std::size_t hooks) noexcept;

// Computes the FNV-1a checksum of a header. The writer stores it as Header::checksum right before
// the ledger is published. The checksum covers the header's fields that never change from then on:
// all up to and including `process`, except the checksum itself, and each region's offset, capacity
// and row size.
std::uint64_t header_checksum(const Header&) noexcept;

}  // namespace cuwarden::ledger
