// How the ledger's address space is divided among its regions, and the checksum of the fields that
// say so. The writer lays it out by these rules; a reader trusts the header's numbers only within
// the bytes it has.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/ledger/format/layout.hpp"

namespace cuwarden::ledger {

inline constexpr std::uint64_t default_total_bytes = std::uint64_t{8} << 30;
// Below this a file would soon be full while memory is not: go on in memory then.
inline constexpr std::uint64_t smallest_useful_file_bytes = std::uint64_t{64} << 20;

struct RegionExtent {
  std::uint64_t offset = 0, capacity_bytes = 0;
  std::uint32_t row_bytes = 0;
};

struct Geometry {
  std::array<RegionExtent, region_count> regions;
  std::uint64_t total_bytes = 0;
};

constexpr std::size_t index_of(RegionId id) { return static_cast<std::size_t>(id); }

// Rows (or bytes) in use from the start: row 0 means none, except in the hooks table.
constexpr std::uint64_t first_row(RegionId id) { return id == RegionId::hooks ? 0 : 1; }

// The division of about `total_bytes`; every region has room for a few rows whatever the total.
Geometry plan_geometry(std::uint64_t total_bytes, std::size_t hooks) noexcept;

// The largest plan that fits `limit_bytes`, by halving; total_bytes == 0 when none does.
Geometry largest_geometry(std::uint64_t limit_bytes, std::size_t hooks) noexcept;

// FNV-1a over the constant fields, up to `mapped_at`, the process and the regions' extents.
std::uint64_t header_checksum(const Header&) noexcept;

}  // namespace cuwarden::ledger
