#include "runtime_hooks/pool/packing/packing.hpp"

#include <atomic>
#include <iterator>

#include "runtime_hooks/pool/packing/pages.hpp"

namespace cuwarden::pool {
namespace {

// The smallest of so many holes, from the lowest address on, is taken.
constexpr int holes_compared = 8;

constinit std::atomic<std::uint64_t> last_serial{0};

std::uint64_t end_of(const Stretch& at) { return at.start + at.taken_bytes; }

}  // namespace

// A block that crosses the end of a page keeps two pages from going back. But if no block did, the
// ends of pages would stay unused. So small blocks cross none while what is free in pages with
// blocks is at most a fiftieth of these pages, and one page.
Placement placement_of_next_block(std::uint64_t used_bytes, std::uint64_t taken_bytes) noexcept {
  constexpr std::uint64_t share = 50;
  return used_bytes <= taken_bytes + used_bytes / share + page_bytes ? Placement::within_page
                                                                     : Placement::anywhere;
}

FreeTree* Packing::tree_of(State state) noexcept {
  if (state == State::hole) return &holes_;
  return state == State::bare ? &bare_ : nullptr;
}

void Packing::enter(Index at, State state) noexcept {
  nodes_[at].state = state;
  if (FreeTree* const tree = tree_of(state)) tree->add(nodes_, at);
}

void Packing::leave(Index at) noexcept {
  if (FreeTree* const tree = tree_of(nodes_[at].state)) tree->remove(nodes_, at);
}

Packing::Index Packing::find(std::uint64_t start) const noexcept {
  const auto found = blocks_.find(start);
  return found == blocks_.end() ? 0 : found->second;
}

Block Packing::block(const Stretch& at) const noexcept {
  return {.start = at.start,
          .bytes = at.block.bytes,
          .taken_bytes = at.taken_bytes,
          .serial = at.block.serial,
          .sync_memops = at.sync_memops};
}

void Packing::add(std::uint64_t start, std::uint64_t bytes, State state) {
  nodes_.reserve(spare_nodes(1));
  const auto [entry, is_new] = regions_.try_emplace(start, 0);
  const Index made = nodes_.add();
  nodes_[made].start = start;
  nodes_[made].taken_bytes = bytes;
  entry->second = made;
  enter(made, state);
}

bool Packing::remove_region(std::uint64_t start) noexcept {
  const auto found = regions_.find(start);
  if (found == regions_.end()) return false;
  const Index first = found->second;
  if (tree_of(nodes_[first].state) == nullptr || nodes_[first].after != 0) return false;
  leave(first);
  nodes_.drop(first);
  regions_.erase(found);
  return true;
}

std::optional<FreePart> Packing::find_hole(std::uint64_t wanted, bool within_page) const noexcept {
  const Room first = within_page ? Room::one_used_page : Room::used_pages,
             then = within_page ? Room::free_pages : Room::whole;
  const auto found = holes_.find(nodes_, first, wanted, holes_compared);
  return found ? found : holes_.find(nodes_, then, wanted, holes_compared);
}

// A bare stretch begins with a page, so that a small block at its start lies in one page.
std::optional<FreePart> Packing::make_hole(std::uint64_t wanted, bool within_page) {
  const auto bare = bare_.find(nodes_, Room::whole, wanted, 1);
  if (!bare) return std::nullopt;
  const Index before = nodes_[bare->stretch].before;
  const std::uint64_t start = !within_page && is(State::hole, before) ? nodes_[before].start
                                                                      : bare->start,
                      bytes = up_to_page(start + wanted) - bare->start;
  nodes_.reserve(spare_nodes(2 + 4 * (bytes / page_bytes)));
  gain_memory(bare->start, bytes);
  return FreePart{first_ending_after(start), start, wanted};
}

std::optional<Block> Packing::take(std::uint64_t bytes, Placement placement) {
  if (bytes == 0 || bytes > most_bytes) return std::nullopt;
  const std::uint64_t wanted = (bytes + step_bytes - 1) / step_bytes * step_bytes;
  const bool within_page = placement == Placement::within_page && wanted <= page_bytes / 2;
  // All host memory is taken before anything changes.
  std::map<std::uint64_t, Index> one{{0, 0}};
  auto entry = one.extract(one.begin());
  nodes_.reserve(spare_nodes(2));
  auto found = find_hole(wanted, within_page);
  if (!found && placement != Placement::in_memory) found = make_hole(wanted, within_page);
  if (!found) return std::nullopt;
  const Index taken = cut_out(found->stretch, found->start, wanted);
  Stretch& made = nodes_[taken];
  made.state = State::live;
  made.block = {bytes, last_serial.fetch_add(1, std::memory_order_relaxed) + 1};
  made.sync_memops = false;
  entry.key() = made.start;
  entry.mapped() = taken;
  blocks_.insert(std::move(entry));
  taken_bytes_ += wanted;
  return block(made);
}

std::optional<Block> Packing::retire(std::uint64_t start) noexcept {
  const Index found = find(start);
  if (found == 0 || nodes_[found].state != State::live) return std::nullopt;
  nodes_[found].state = State::retired;
  return block(nodes_[found]);
}

void Packing::unretire(std::uint64_t start) noexcept {
  if (const Index found = find(start); found != 0) nodes_[found].state = State::live;
}

bool Packing::has_retired(const Block& block) const noexcept {
  const Index found = find(block.start);
  return found != 0 && nodes_[found].state == State::retired &&
         nodes_[found].block.serial == block.serial;
}

bool Packing::give(std::uint64_t start) noexcept {
  const Index given = find(start);
  if (given == 0) return false;
  blocks_.erase(start);
  taken_bytes_ -= nodes_[given].taken_bytes;
  settle(given, State::hole);
  return true;
}

void Packing::absorb_after(Index at) noexcept {
  const Index gone = nodes_[at].after;
  nodes_[at].taken_bytes += nodes_[gone].taken_bytes;
  nodes_[at].after = nodes_[gone].after;
  if (nodes_[at].after != 0) nodes_[nodes_[at].after].before = at;
  nodes_.drop(gone);
}

void Packing::follow(Index before, Index at) noexcept {
  nodes_[at].before = before;
  if (before != 0)
    nodes_[before].after = at;
  else
    std::prev(regions_.upper_bound(nodes_[at].start))->second = at;
}

Packing::Index Packing::split(Index at, std::uint64_t address) noexcept {
  const Index rest = nodes_.add();
  Stretch &first = nodes_[at], &second = nodes_[rest];
  second.state = first.state;
  second.start = address;
  second.taken_bytes = end_of(first) - address;
  second.before = at;
  second.after = first.after;
  if (second.after != 0) nodes_[second.after].before = rest;
  first.after = rest;
  first.taken_bytes -= second.taken_bytes;
  return rest;
}

// The rest of the hole stays in the tree.
Packing::Index Packing::cut_out(Index hole, std::uint64_t start, std::uint64_t wanted) noexcept {
  Stretch& whole = nodes_[hole];
  if (whole.taken_bytes == wanted) {
    leave(hole);
    return hole;
  }
  if (whole.start != start) {
    const Index cut = split(hole, start);
    if (nodes_[cut].taken_bytes != wanted) enter(split(cut, start + wanted), State::hole);
    FreeTree::resized(nodes_, hole);
    return cut;
  }
  const Index cut = nodes_.add();
  nodes_[cut].start = start;
  nodes_[cut].taken_bytes = wanted;
  nodes_[cut].after = hole;
  follow(whole.before, cut);
  whole.before = cut;
  whole.start += wanted;
  whole.taken_bytes -= wanted;
  FreeTree::resized(nodes_, hole);
  return cut;
}

Packing::Index Packing::settle(Index at, State state) noexcept {
  const Index before = nodes_[at].before, after = nodes_[at].after;
  const bool is_in_tree = tree_of(state) != nullptr;
  if (is(state, before)) {
    if (is(state, after)) {
      leave(after);
      absorb_after(at);
    }
    absorb_after(before);
    if (is_in_tree) FreeTree::resized(nodes_, before);
    return before;
  }
  if (is(state, after)) {
    nodes_[after].start = nodes_[at].start;
    nodes_[after].taken_bytes += nodes_[at].taken_bytes;
    follow(before, after);
    nodes_.drop(at);
    if (is_in_tree) FreeTree::resized(nodes_, after);
    return after;
  }
  enter(at, state);
  return at;
}

Packing::Index Packing::first_ending_after(std::uint64_t address) const noexcept {
  const auto region = regions_.upper_bound(address);
  if (region == regions_.begin()) return 0;
  Index at = std::prev(region)->second;
  if (const auto block = blocks_.upper_bound(address);
      block != blocks_.begin() && std::prev(block)->first > nodes_[at].start)
    at = std::prev(block)->second;
  for (const FreeTree* const tree : {&holes_, &bare_})
    if (const Index last = tree->last_up_to(nodes_, address);
        last != 0 && nodes_[last].start > nodes_[at].start)
      at = last;
  // Two withheld stretches are never neighbours, so that there is at most one more step to go.
  while (at != 0 && end_of(nodes_[at]) <= address) at = nodes_[at].after;
  return at;
}

std::uint64_t Packing::turn(std::uint64_t start, std::uint64_t bytes, State from,
                            State to) noexcept {
  const std::uint64_t end = start + bytes;
  std::uint64_t turned = 0;
  for (Index at = first_ending_after(start); at != 0 && nodes_[at].start < end;
       at = nodes_[at].after) {
    if (!is(from, at)) continue;
    leave(at);
    if (nodes_[at].start < start) {
      const Index rest = split(at, start);
      enter(at, from);
      at = rest;
    }
    if (end_of(nodes_[at]) > end) enter(split(at, end), from);
    turned += nodes_[at].taken_bytes;
    at = settle(at, to);
  }
  return turned;
}

void Packing::gain_memory(std::uint64_t start, std::uint64_t bytes) noexcept {
  memory_pages_ += turn(start, bytes, State::bare, State::hole) / page_bytes;
}

void Packing::lose_memory(std::uint64_t start, std::uint64_t bytes) noexcept {
  memory_pages_ -= turn(start, bytes, State::hole, State::bare) / page_bytes;
}

void Packing::announce_withheld(std::uint64_t parts) {
  nodes_.reserve(spare_nodes(2 * parts));
  withheld_parts_ += parts;
}

void Packing::withhold(std::uint64_t start, std::uint64_t bytes) noexcept {
  turn(start, bytes, State::hole, State::withheld);
}

void Packing::release(std::uint64_t start, std::uint64_t bytes) noexcept {
  turn(start, bytes, State::withheld, State::hole);
}

std::optional<Block> Packing::block_at(std::uint64_t start) const noexcept {
  const Index found = find(start);
  return found != 0 && nodes_[found].state == State::live ? std::optional(block(nodes_[found]))
                                                          : std::nullopt;
}

std::optional<Block> Packing::block_around(std::uint64_t address) const noexcept {
  const auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return std::nullopt;
  const Stretch& found = nodes_[std::prev(after)->second];
  return found.state == State::live && address - found.start < found.block.bytes
             ? std::optional(block(found))
             : std::nullopt;
}

void Packing::set_sync_memops(std::uint64_t start, bool on) noexcept {
  if (const Index found = find(start); found != 0) nodes_[found].sync_memops = on;
}

}  // namespace cuwarden::pool
