#include "reporters/reachability/driver_variables.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "reporters/reachability/malloc_chunks.hpp"

namespace cuwarden::reachability {

namespace {

// Larger chunks are tables, whose entries are records of the blocks.
constexpr std::uint64_t largest_chunk_bytes = std::uint64_t{64} << 10;

// True if memory of malloc may lie in the area.
bool may_hold_chunks(const Area* area) {
  return area != nullptr && area->is_readable && area->is_writable && !area->is_shared &&
         (area->use == AreaUse::heap || area->use == AreaUse::anonymous);
}

}  // namespace

DriverVariables::DriverVariables(PresentMemory& memory, const std::vector<Area>& areas) {
  for (const Area& area : areas)
    if (area.use == AreaUse::driver_library && area.is_readable && area.is_writable)
      add_pointers(memory, areas, area.range);
  std::vector<std::uint64_t> first = pointers_;
  std::ranges::sort(first);
  first.erase(std::unique(first.begin(), first.end()), first.end());
  for (const std::uint64_t contents : first) {
    std::array<std::uint64_t, 1> header{};
    if (memory.read_present(contents - sizeof header, header) != header.size()) continue;
    const std::uint64_t bytes = header[0] & chunk_size_bits;
    const std::uint64_t left = area_at(areas, contents)->range.end - contents;
    if (is_sound_chunk_size(bytes, std::min(left, largest_chunk_bytes)))
      add_pointers(memory, areas, {contents, contents + bytes - sizeof header});
  }
  std::ranges::sort(pointers_);
}

void DriverVariables::add_pointers(PresentMemory& memory, const std::vector<Area>& areas,
                                   Range range) {
  std::vector<std::uint64_t> words;
  memory.each_present(range, false, [&](Range run) {
    words.resize(run.bytes() / sizeof(std::uint64_t));
    const std::size_t got = memory.read(run.start, words);
    for (const std::uint64_t word : std::span(words).first(got))
      if (word >= bytes_of_page && word % chunk_header_bytes == 0 &&
          may_hold_chunks(area_at(areas, word)))
        pointers_.push_back(word);
  });
}

bool DriverVariables::lead_to(std::uint64_t chunk) const {
  return std::ranges::binary_search(pointers_, chunk + chunk_header_bytes);
}

}  // namespace cuwarden::reachability
