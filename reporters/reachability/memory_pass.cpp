#include "reporters/reachability/memory_pass.hpp"

#include <algorithm>
#include <array>

#include "reporters/reachability/malloc_chunks.hpp"

namespace cuwarden::reachability {

namespace {

// The window fits into the second cache of a core.
constexpr std::size_t window_words = std::size_t{1} << 15;
constexpr std::uint64_t window_bytes = window_words * sizeof(std::uint64_t);

constexpr std::uint64_t previous_is_in_use = 1;
// Largest chunk that glibc keeps in lists of free chunks without marking it as free.
constexpr std::uint64_t largest_listed_chunk = 0x420;
// Size and alignment of the memory that glibc reserves for a heap of a thread.
constexpr std::uint64_t thread_heap_bytes = std::uint64_t{64} << 20;
constexpr std::uint64_t bytes_below_stack_pointer = 128;

}  // namespace

MemoryPass::MemoryPass(PresentMemory& memory, const Surroundings& surroundings,
                       const BlockIndex& blocks, FunctionRef<void(const Hit&)> visit,
                       FunctionRef<bool()> may_go_on)
    : memory_(memory),
      surroundings_(surroundings),
      blocks_(blocks),
      visit_(visit),
      may_go_on_(may_go_on),
      window_(window_words) {}

bool MemoryPass::run() {
  if (blocks_.empty()) return true;
  for (const Area& area : surroundings_.areas) {
    if (!may_go_on_()) is_whole_ = false;
    if (!is_whole_) break;
    scan_area(area);
  }
  const auto give_word = [&](std::uint64_t word) {
    Hit hit;
    hit.location = HitLocation::certain;
    hit.word = word;
    give(hit);
  };
  for (const ThreadState& thread : surroundings_.threads)
    if (!thread.is_drivers) std::ranges::for_each(thread.arguments, give_word);
  return is_whole_;
}

void MemoryPass::scan_area(const Area& area) {
  if (area.use == AreaUse::device_or_kernel && area.is_writable) {
    for (const Range& managed : surroundings_.managed) {
      const Range part{std::max(managed.start, area.range.start),
                       std::min(managed.end, area.range.end)};
      if (part.start < part.end) scan_plain(part, HitLocation::unknown, false);
    }
  }
  if (!area.is_readable || area.use == AreaUse::device_or_kernel || area.use == AreaUse::own ||
      area.use == AreaUse::driver_library)
    return;
  Range range = area.range;
  const bool may_be_stack = area.use == AreaUse::stack || area.is_guarded;
  HitLocation location = area.use == AreaUse::library || area.use == AreaUse::stack
                             ? HitLocation::certain
                             : HitLocation::unknown;
  // A coroutine's stack may lie in a heap, and several stacks in one area.
  std::vector<Heap> heaps;
  if (area.use == AreaUse::anonymous && area.is_writable && !area.is_shared)
    heaps = thread_heaps(range);
  std::uint64_t lowest = UINT64_MAX;
  bool is_drivers = true;
  for (const ThreadState& thread : surroundings_.threads) {
    if (!may_be_stack || !heaps.empty() || thread.stack_pointer < range.start ||
        thread.stack_pointer >= range.end)
      continue;
    is_drivers = is_drivers && thread.is_drivers;
    lowest = std::min(lowest, thread.stack_pointer);
  }
  if (lowest != UINT64_MAX) {
    if (is_drivers) return;
    // A function that calls no other one may use the memory below its stack pointer.
    range.start = std::max(range.start, (lowest - bytes_below_stack_pointer) / 8 * 8);
    location = HitLocation::certain;
  }
  if (area.use == AreaUse::heap) {
    if (begins_chunks(range.start, range.end)) return scan_heap(range, range.start);
  }
  for (const Heap& heap : heaps) {
    scan_plain({range.start, heap.range.start}, location, false);
    scan_heap(heap.range, heap.first_chunk);
    range.start = heap.range.end;
  }
  // A page that cannot be written holds a pointer only if it was written before, by this process.
  const bool only_own = !area.is_writable;
  if (only_own && area.is_shared) return;
  scan_plain(range, location, only_own);
}

template <class Scan>
void MemoryPass::each_part(Range range, const Scan& scan) const {
  for (const Range& out : surroundings_.excluded) {
    if (out.end <= range.start) continue;
    if (out.start >= range.end) break;
    if (out.start > range.start) scan(Range{range.start, out.start});
    range.start = std::min(out.end, range.end);
  }
  if (range.start < range.end) scan(range);
}

void MemoryPass::scan_plain(Range whole, HitLocation location, bool only_own) {
  each_part(whole, [&](Range part) {
    constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);
    part.start = (part.start + word_bytes - 1) / word_bytes * word_bytes;
    part.end = part.end / word_bytes * word_bytes;
    if (part.start >= part.end) return;
    const bool all_seen = memory_.each_present(part, only_own, [&](Range run) {
      while (run.start < run.end && is_whole_) {
        if (!may_go_on_()) {
          is_whole_ = false;
          return;
        }
        const std::uint64_t bytes = std::min(run.bytes(), window_bytes);
        const std::span<std::uint64_t> into =
            std::span(window_).first(bytes / sizeof(std::uint64_t));
        const std::size_t got = memory_.read(run.start, into);
        scan_words(into.first(got), location);
        // Memory that was unmapped meanwhile holds no pointer any more.
        run.start += got == into.size()
                         ? bytes
                         : bytes_of_page - run.start % bytes_of_page +
                               got * sizeof(std::uint64_t) / bytes_of_page * bytes_of_page;
      }
    });
    if (!all_seen) is_whole_ = false;
  });
}

void MemoryPass::scan_words(std::span<const std::uint64_t> words, HitLocation location) {
  scanned_bytes_ += words.size_bytes();
  blocks_.each_candidate(words, [&](std::size_t i) {
    Hit hit;
    hit.location = location;
    hit.word = words[i];
    hit.next = i + 1 < words.size() ? words[i + 1] : 0;
    give(hit);
  });
}

void MemoryPass::give(Hit hit) {
  blocks_.each_block_at(hit.word, [&](const Block& block) {
    hit.block = &block;
    visit_(hit);
  });
}

std::span<const std::uint64_t> MemoryPass::fill_window(std::uint64_t start, std::uint64_t end) {
  const std::uint64_t bytes = std::min(end - start, window_bytes);
  const std::span<std::uint64_t> window = std::span(window_).first(bytes / sizeof(std::uint64_t));
  std::uint64_t filled = start;
  const auto fill_zeros = [&](std::uint64_t until) {
    std::fill(window.begin() + static_cast<std::ptrdiff_t>((filled - start) / 8),
              window.begin() + static_cast<std::ptrdiff_t>((until - start) / 8), 0);
    filled = until;
  };
  const bool all_seen =
      memory_.each_present({start, start + window.size_bytes()}, false, [&](Range run) {
        fill_zeros(run.start);
        const std::size_t words = run.bytes() / sizeof(std::uint64_t);
        const std::size_t got =
            memory_.read(run.start, window.subspan((run.start - start) / 8, words));
        filled = run.start + got * sizeof(std::uint64_t);
        fill_zeros(run.end);
      });
  if (!all_seen) is_whole_ = false;
  fill_zeros(start + window.size_bytes());
  return window;
}

void MemoryPass::scan_heap(Range heap, std::uint64_t start) {
  std::span<const std::uint64_t> window;
  std::uint64_t window_at = 0;
  std::uint64_t at = start;
  const auto word_at = [&](std::uint64_t address) { return window[(address - window_at) / 8]; };
  const auto holds = [&](std::uint64_t from, std::uint64_t until) {
    return from >= window_at && until <= window_at + window.size_bytes();
  };
  while (at + smallest_chunk_bytes <= heap.end && is_whole_) {
    if (!holds(at, at + smallest_chunk_bytes)) {
      if (!may_go_on_()) {
        is_whole_ = false;
        return;
      }
      window = fill_window(window_at = at, heap.end);
    }
    const std::uint64_t size = word_at(at + 8) & chunk_size_bits;
    if (!is_sound_chunk_size(size, heap.end - at)) break;
    const std::uint64_t next = at + size;
    // The last chunk is the memory that malloc has not handed out yet.
    if (next + chunk_header_bytes > heap.end) return;
    if (!holds(at, next + chunk_header_bytes) && size + chunk_header_bytes <= window_bytes)
      window = fill_window(window_at = at, heap.end);
    if (holds(at, next + chunk_header_bytes)) {
      if ((word_at(next + 8) & previous_is_in_use) != 0)
        scan_chunk(at, size, window.subspan((at - window_at) / 8, size / 8 + 1));
    } else {
      std::array<std::uint64_t, 2> header{};
      if (memory_.read_present(next, header) != header.size()) break;
      if ((header[1] & previous_is_in_use) != 0)
        scan_plain({at + chunk_header_bytes, next + 8}, HitLocation::unknown, false);
      window = {};
      window_at = 0;
    }
    at = next;
  }
  if (at < heap.end) scan_plain({at, heap.end}, HitLocation::unknown, false);
}

// A chunk in use also has the word behind it, which is the header of the next one.
void MemoryPass::scan_chunk(std::uint64_t chunk, std::uint64_t bytes,
                            std::span<const std::uint64_t> words) {
  scanned_bytes_ += bytes;
  const std::span<const std::uint64_t> contents = words.subspan(chunk_header_bytes / 8);
  bool is_known = false, is_free = false;
  blocks_.each_candidate(contents, [&](std::size_t i) {
    if (!is_known) is_free = is_in_free_list(chunk, bytes, contents[0]);
    is_known = true;
    if (is_free) return;
    Hit hit;
    hit.location = HitLocation::chunk;
    hit.word = contents[i];
    hit.next = i + 1 < contents.size() ? contents[i + 1] : 0;
    hit.chunk = chunk;
    hit.chunk_bytes = bytes;
    hit.index = i;
    if (bytes <= largest_shape_bytes) hit.around = contents;
    give(hit);
  });
}

// Since version 2.32, glibc stores the address of the next free chunk of a list together with that
// of the word which holds it. Each list has chunks of one size.
bool MemoryPass::is_in_free_list(std::uint64_t chunk, std::uint64_t bytes,
                                 std::uint64_t first_word) const {
  if (bytes > largest_listed_chunk) return false;
  const std::uint64_t next = first_word ^ ((chunk + chunk_header_bytes) >> 12);
  if (next == 0) return true;
  if (next % chunk_header_bytes != 0 || next < bytes_of_page) return false;
  // One kind of list has the addresses of chunks, the other one those of contents.
  for (const std::uint64_t header : {next + 8, next - 8}) {
    std::array<std::uint64_t, 1> size{};
    if (memory_.read_present(header, size) == 1 && (size[0] & chunk_size_bits) == bytes)
      return true;
  }
  return false;
}

bool MemoryPass::begins_chunks(std::uint64_t start, std::uint64_t end) const {
  constexpr int enough = 8;
  for (int i = 0; i < enough; ++i) {
    std::array<std::uint64_t, 2> header{};
    if (start % chunk_header_bytes != 0 || start + smallest_chunk_bytes > end ||
        memory_.read_present(start, header) != header.size() ||
        !is_sound_chunk_size(header[1] & chunk_size_bits, end - start))
      return false;
    start += header[1] & chunk_size_bits;
    if (start + chunk_header_bytes > end) return true;
  }
  return true;
}

// A thread's heap begins with the address of its arena, that of the heap before it, and twice a
// size. The arena lies behind that in the first heap. Its size depends on glibc's version.
std::vector<MemoryPass::Heap> MemoryPass::thread_heaps(Range area) const {
  constexpr std::array<std::uint64_t, 6> first_chunks{0x8d0, 0x8c0, 0x8b0, 0x8a0, 0x8e0, 0x8f0};
  constexpr std::array<std::uint64_t, 2> first_chunks_of_later{0x30, 0x20};
  std::vector<Heap> heaps;
  std::uint64_t base = (area.start + thread_heap_bytes - 1) / thread_heap_bytes * thread_heap_bytes;
  for (; base < area.end && base >= area.start; base += thread_heap_bytes) {
    std::array<std::uint64_t, 4> words{};
    if (!may_go_on_()) break;
    if (memory_.read_present(base, words) != words.size()) continue;
    const auto [arena, previous, size, accessible] = words;
    if (arena == 0 || arena % 8 != 0 || previous % thread_heap_bytes != 0 || size < bytes_of_page ||
        size > thread_heap_bytes || size % bytes_of_page != 0 || accessible < size ||
        accessible > thread_heap_bytes || base + size > area.end)
      continue;
    const bool is_first = arena / thread_heap_bytes * thread_heap_bytes == base;
    for (const std::uint64_t offset :
         is_first ? std::span<const std::uint64_t>(first_chunks) : first_chunks_of_later) {
      if (!begins_chunks(base + offset, base + size)) continue;
      heaps.push_back({{base, base + size}, base + offset});
      break;
    }
  }
  return heaps;
}

}  // namespace cuwarden::reachability
