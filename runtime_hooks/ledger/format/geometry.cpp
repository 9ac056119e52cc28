// Regions follow the header in the order of RegionId, each on a page of its own.
#include "runtime_hooks/ledger/format/geometry.hpp"

#include <algorithm>
#include <cstring>

#include "runtime_hooks/core/memory/mapping.hpp"

namespace cuwarden::ledger {
namespace {

struct Share {
  std::uint64_t divisor;       // the region's share of the ledger's bytes is 1 / divisor
  std::uint64_t minimum_rows;  // least number of rows, whatever the ledger's size
  std::uint32_t row_bytes;
};

// The divisors' reciprocals add up to less than one.
constexpr std::array<Share, region_count> shares = {{
    {2, 1024, sizeof(Record)},
    {8, 64, sizeof(Group)},
    {32, 64, sizeof(Stack)},
    {4, 2048, sizeof(Frame)},
    {32, 65536, 1},
    {512, 64, sizeof(Module)},
    {512, 64, sizeof(Thread)},
    {1024, 24, sizeof(Series)},
    {8192, 16, sizeof(Device)},
    {8192, 1, sizeof(Hook)},
    {4096, 64, sizeof(NamedCount)},
    {8192, 64, sizeof(NamedValue)},
    {8192, 64, sizeof(NamedValue)},
    {32, 64, sizeof(GroupShard)},
    {8192, 2048, sizeof(std::uint64_t)},
    {8192, 16, sizeof(Incident)},
    {8192, 64, sizeof(IncidentHolder)},
    {8192, 64, sizeof(IncidentClass)},
    {512, 64, sizeof(IncidentSlab)},
    {8192, 64, sizeof(IncidentRung)},
    {8192, 64, sizeof(IncidentProcess)},
    {128, 64, sizeof(SlabPage)},
    {8192, 16, sizeof(WorstHolder)},
    {512, 64, sizeof(PythonCode)},
    {2048, 3072, sizeof(StepMark)},
    {8192, 64, sizeof(FrameworkPool)},
}};

class Fnv1a {
 public:
  template <class T>
  void add(const T& value) noexcept {
    unsigned char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    for (const unsigned char byte : bytes) hash_ = (hash_ ^ byte) * 0x100000001b3;
  }
  std::uint64_t value() const noexcept { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace

std::uint32_t row_bytes_of(RegionId id) noexcept { return shares[index_of(id)].row_bytes; }

Geometry plan_geometry(std::uint64_t total_bytes, std::size_t hooks) noexcept {
  Geometry plan;
  std::uint64_t offset = round_up(sizeof(Header), page_bytes);
  for (std::size_t i = 0; i < region_count; ++i) {
    const Share& share = shares[i];
    std::uint64_t rows = share.minimum_rows;
    if (i == index_of(RegionId::hooks)) rows = std::max<std::uint64_t>(rows, hooks);
    const std::uint64_t bytes =
        round_up(std::max(total_bytes / share.divisor, rows * share.row_bytes), page_bytes);
    plan.regions[i] = {offset, bytes, share.row_bytes};
    offset += bytes;
  }
  plan.total_bytes = offset;
  return plan;
}

Geometry largest_geometry(std::uint64_t limit_bytes, std::size_t hooks) noexcept {
  for (std::uint64_t total = default_total_bytes; total >= page_bytes; total /= 2) {
    const Geometry plan = plan_geometry(total, hooks);
    if (plan.total_bytes <= limit_bytes) return plan;
  }
  return {};
}

std::uint64_t header_checksum(const Header& header) noexcept {
  Fnv1a sum;
  sum.add(header.magic);
  sum.add(header.version);
  sum.add(header.header_bytes);
  sum.add(header.file_bytes);
  sum.add(header.mapped_at);
  sum.add(header.process);
  for (const Region& region : header.regions) {
    sum.add(region.offset);
    sum.add(region.capacity_bytes);
    sum.add(region.row_bytes);
  }
  return sum.value();
}

}  // namespace cuwarden::ledger
