#include "reporters/tables/slabs.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "reporters/model/each_row.hpp"
#include "runtime_hooks/core/memory/mapping.hpp"

namespace cuwarden {
namespace {

constexpr std::uint64_t usual_page = 2 << 20, smallest_page = 64 << 10;
constexpr std::uint64_t usual_step = 512;

struct Piece {
  std::uint64_t address = 0, bytes = 0, time_ns = 0;
  std::uint32_t group = 0;
};

std::uint64_t alignment_of(std::uint64_t bits) { return bits & (0 - bits); }

// Sorts by address, and drops pieces that were freed while the records were read. A running process
// may have allocated there again meanwhile. So the older one of two pieces that overlap is dropped.
void drop_stale(std::vector<Piece>& pieces) {
  std::ranges::sort(pieces, {}, &Piece::address);
  std::size_t kept = 0;
  for (const Piece& piece : pieces) {
    if (kept > 0 && piece.address < pieces[kept - 1].address + pieces[kept - 1].bytes) {
      if (piece.time_ns <= pieces[kept - 1].time_ns) continue;
      --kept;
    }
    pieces[kept++] = piece;
  }
  pieces.resize(kept);
}

std::map<std::int32_t, std::vector<Piece>> live_pieces(const ledger::Reader& reader, RowDone done) {
  std::map<std::uint32_t, std::int32_t> device_of_group;
  each_row(reader, ledger::RegionId::groups, &ledger::Reader::group, [&](const auto& group) {
    if (group.kind == Kind::device && group.device.value >= 0)
      device_of_group[group.id.value] = group.device.value;
  });
  std::map<std::int32_t, std::vector<Piece>> pieces;
  std::uint32_t last_group = 0;
  std::vector<Piece>* last = nullptr;
  each_row(reader, ledger::RegionId::records, &ledger::Reader::record, [&](const auto& record) {
    done();
    if (record.space != Space::pointer || record.bytes.value == 0 ||
        (record.flags & (ledger::record_counts_no_bytes | ledger::record_in_pool)) != 0)
      return;
    if (record.group.value != last_group) {
      const auto device = device_of_group.find(record.group.value);
      last_group = record.group.value;
      last = device == device_of_group.end() ? nullptr : &pieces[device->second];
    }
    // An allocation in a damaged ledger may extend past the last address.
    if (last == nullptr || record.address.value + record.bytes.value < record.address.value) return;
    last->push_back({record.address.value, record.bytes.value, record.time_ns, record.group.value});
  });
  for (auto& [device, all] : pieces) drop_stale(all);
  return pieces;
}

// Returns the size of pages. Requests for whole pages begin at multiples of it.
std::uint64_t page_of(std::span<const Piece> pieces) {
  std::uint64_t bits = 0;
  for (const Piece& piece : pieces)
    if (piece.bytes >= 2 * usual_page) bits |= piece.address;
  return bits == 0 ? usual_page : std::clamp(alignment_of(bits), smallest_page, usual_page);
}

// Calls visit(pieces) for the pieces that begin in the same page.
template <class Visit>
void each_page(std::span<const Piece> pieces, std::uint64_t page, const Visit& visit) {
  while (!pieces.empty()) {
    std::size_t count = 1;
    while (count < pieces.size() && pieces[count].address / page == pieces[0].address / page)
      ++count;
    visit(pieces.first(count));
    pieces = pieces.subspan(count);
  }
}

// The groups with the most pieces of a slab: (number of pieces, group), most first.
using LargestGroups = std::array<std::pair<std::uint64_t, GroupId>, ledger::slab_group_count>;

// Puts the group in its position among the largest ones. Of groups with equal numbers of pieces,
// the one that was noted first comes first.
void note_group(LargestGroups& largest, std::uint64_t count, GroupId group) {
  std::size_t at = largest.size() - 1;
  if (count <= largest[at].first) return;
  for (; at > 0 && count > largest[at - 1].first; --at) largest[at] = largest[at - 1];
  largest[at] = {count, group};
}

// Adds the slab with these pieces, and sorts the pieces by their groups.
void add_slab(Fragmentation& all, std::span<Piece> pieces) {
  LiveSlab slab;
  slab.address = pieces[0].address / all.page_bytes * all.page_bytes;
  std::map<std::uint64_t, std::uint64_t> bytes_by_class;
  for (const Piece& piece : pieces) {
    ++slab.live_count;
    slab.live_bytes += piece.bytes;
    slab.cut_bytes += round_up(piece.bytes, all.step_bytes);
    bytes_by_class[std::bit_ceil(std::max(piece.bytes, all.step_bytes))] += piece.bytes;
  }
  slab.class_bytes = std::ranges::max_element(bytes_by_class, {}, [](const auto& each) {
                       return each.second;
                     })->first;
  // The pieces in a damaged ledger may fill more than a page.
  const std::uint64_t locked = all.page_bytes - std::min(slab.cut_bytes, all.page_bytes);
  std::ranges::sort(pieces, {}, &Piece::group);
  LargestGroups largest{};
  for (std::size_t first = 0; first < pieces.size();) {
    const std::uint32_t group = pieces[first].group;
    SlabHolder& holder = all.holders[group];
    std::uint64_t count = 0;
    for (; first < pieces.size() && pieces[first].group == group; ++first, ++count)
      holder.bytes += pieces[first].bytes;
    holder.count += count;
    holder.locked_bytes += count * (locked / pieces.size());
    note_group(largest, count, {group});
  }
  std::ranges::transform(largest, slab.groups.begin(), &LargestGroups::value_type::second);
  SlabClass& size_class = all.classes[slab.class_bytes];
  ++size_class.slab_count;
  size_class.live_count += slab.live_count;
  size_class.live_bytes += slab.live_bytes;
  all.locked_bytes += locked;
  all.rounding_bytes += slab.cut_bytes - slab.live_bytes;
  all.slabs.push_back(slab);
}

Fragmentation fragmentation_of(std::span<const Piece> pieces) {
  Fragmentation all;
  all.page_bytes = page_of(pieces);
  const auto ends_in_its_page = [&](const Piece& piece) {
    return piece.bytes <= all.page_bytes - piece.address % all.page_bytes;
  };
  std::uint64_t bits = 0;
  each_page(pieces, all.page_bytes, [&](std::span<const Piece> in_page) {
    if (in_page.size() == 1) return;
    for (const Piece& piece : in_page) {
      if (!ends_in_its_page(piece)) continue;
      all.largest_piece = std::max(all.largest_piece, piece.bytes);
      bits |= piece.address;
    }
  });
  all.step_bytes = bits == 0 ? usual_step : std::min(alignment_of(bits), usual_step);

  // A piece that is alone in its page may be the last one of a slab. If another such piece would
  // fit, the rest of the page is locked. Otherwise the rest is lost to rounding.
  const std::uint64_t half = all.page_bytes / 2;
  const auto is_slabs = [&](const Piece& piece, std::size_t count) {
    return ends_in_its_page(piece) && round_up(piece.bytes, all.step_bytes) < all.page_bytes &&
           (count > 1 || round_up(piece.bytes, all.step_bytes) <= half);
  };
  std::vector<Piece> in_slab;
  each_page(pieces, all.page_bytes, [&](std::span<const Piece> in_page) {
    in_slab.clear();
    for (const Piece& piece : in_page) {
      if (is_slabs(piece, in_page.size())) {
        in_slab.push_back(piece);
      } else {
        all.rounding_bytes += round_up(piece.bytes, all.page_bytes) - piece.bytes;
      }
    }
    if (!in_slab.empty()) add_slab(all, in_slab);
  });
  return all;
}

}  // namespace

std::map<std::int32_t, Fragmentation> find_fragmentation(const ledger::Reader& reader,
                                                         RowDone done) {
  std::map<std::int32_t, Fragmentation> result;
  for (const auto& [device, pieces] : live_pieces(reader, done))
    if (!pieces.empty()) result.emplace(device, fragmentation_of(pieces));
  each_row(reader, ledger::RegionId::devices, &ledger::Reader::device, [&](const auto& device) {
    if (device.ordinal.value >= 0 && device.memory_pool_idle_bytes.value_or(0) > 0)
      result.try_emplace(device.ordinal.value);
  });
  return result;
}

}  // namespace cuwarden
