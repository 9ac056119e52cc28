#include "reporters/tables/groups/library_reserves.hpp"

#include <algorithm>
#include <optional>

#include "reporters/model/device_id.hpp"
#include "reporters/owners/library_reserves.hpp"
#include "reporters/tables/groups/implicit_groups.hpp"

namespace cuwarden {
namespace {

// The live allocations of a reserve on one device for which one module asked.
struct ReserveSum {
  const LibraryReserve* reserve;
  std::uint32_t module;  // id in the report
  DeviceOrdinal device;
  std::uint64_t count = 0, bytes = 0;
};

}  // namespace

std::uint32_t asker_of(const ledger::Reader& reader, StackId id, const CallFrames& frames) {
  const auto known = frames.known_stack(id);
  const auto stack = known ? reader.stack(*known) : std::nullopt;
  if (!stack) return 0;
  return frames.innermost_module(
      *stack, [](std::string_view path) { return !is_between_cuda_and_asker(path); });
}

void put_library_reserves(const ledger::Reader& reader, const std::vector<LeakGroup>& groups,
                          const CallFrames& frames, Put<model::LibraryReserve> put) {
  std::vector<ReserveSum> sums;
  for (const LeakGroup& live : groups) {
    if (live.released_by_context) continue;
    const std::uint32_t module = asker_of(reader, live.group.stack, frames);
    if (module == 0) continue;
    const LibraryReserve* const reserve =
        reserve_of(frames.modules().at(module).path, live.group.kind, live.group.device);
    if (reserve == nullptr) continue;
    auto sum = std::ranges::find_if(sums, [&](const ReserveSum& each) {
      return each.reserve == reserve && each.module == module && each.device == live.group.device;
    });
    if (sum == sums.end()) sum = sums.insert(sum, {reserve, module, live.group.device});
    sum->count += live.count;
    sum->bytes += live.bytes;
  }
  std::ranges::stable_sort(sums, std::ranges::greater(), &ReserveSum::bytes);
  for (const ReserveSum& sum : sums)
    put({.library = std::string(sum.reserve->library),
         .module = sum.module,
         .device = device_id(sum.device),
         .count = sum.count,
         .bytes = sum.bytes,
         .holds = std::string(sum.reserve->holds),
         .gives_back = model::text_or_null(sum.reserve->gives_back),
         .limited_by = model::text_or_null(sum.reserve->limited_by)});
}

LibrariesImplicit implicit_of_libraries(const ledger::Reader& reader,
                                        const std::vector<LeakGroup>& groups,
                                        const CallFrames& frames) {
  LibrariesImplicit result;
  for (const LeakGroup& live : groups) {
    const std::uint64_t bytes = live.bytes + live.kept_bytes;
    if (bytes == 0) continue;
    const std::uint32_t module = asker_of(reader, live.group.stack, frames);
    if (module == 0 ||
        reserve_of(frames.modules().at(module).path, Kind::device, live.group.device) == nullptr)
      continue;
    ledger::ImplicitBytes& sums = result[live.group.device.value];
    if (live.group.kind == Kind::stream) sums.streams += bytes;
    if (live.group.kind == Kind::module) sums.modules += bytes;
    if (live.group.kind == Kind::graph_exec) sums.graphs += bytes;
  }
  return result;
}

LibrariesImplicit live_implicit_of_libraries(const ledger::Reader& reader) {
  const std::vector<LeakGroup> objects = live_implicit_groups(reader);
  CallFrames frames(reader);
  for (const LeakGroup& group : objects) frames.add_stack(group.group.stack);
  return implicit_of_libraries(reader, objects, frames);
}

}  // namespace cuwarden
