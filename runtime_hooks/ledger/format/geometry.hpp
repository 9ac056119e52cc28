// The division of the ledger's address space into regions, and the checksum of the fields that
// describe it. The writer lays a ledger out by these rules. A reader believes the header's numbers
// only as far as they lie within the file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/ledger/format/layout.hpp"

namespace cuwarden::ledger {

inline constexpr std::uint64_t default_total_bytes = std::uint64_t{8} << 30;
// Least useful size of a file, in bytes. If only a smaller file is possible, the ledger is kept in
// memory, since the file would soon be full.
inline constexpr std::uint64_t smallest_useful_file_bytes = std::uint64_t{64} << 20;

// Location, size and row size of a region in the file, in bytes.
struct RegionExtent {
  std::uint64_t offset = 0, capacity_bytes = 0;
  std::uint32_t row_bytes = 0;
};

// The division of the file among the regions.
struct Geometry {
  std::array<RegionExtent, region_count> regions;
  std::uint64_t total_bytes = 0;
};

constexpr std::size_t index_of(RegionId id) { return static_cast<std::size_t>(id); }

// Returns the number of rows (or bytes) that are in use from the start: row 0 means none, except in
// the hooks table.
constexpr std::uint64_t first_row(RegionId id) { return id == RegionId::hooks ? 0 : 1; }

// Divides about `total_bytes` among the regions. Each region has room for a few rows at least.
Geometry plan_geometry(std::uint64_t total_bytes, std::size_t hooks) noexcept;

// Returns the largest division that fits into `limit_bytes`, found by halving; its total_bytes is 0
// if none fits.
Geometry largest_geometry(std::uint64_t limit_bytes, std::size_t hooks) noexcept;

// Returns the checksum (FNV-1a) of the fields that never change: those before `mapped_at`, the
// process, and the regions' extents.
std::uint64_t header_checksum(const Header&) noexcept;

}  // namespace cuwarden::ledger
