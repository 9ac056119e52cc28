#include "shim/reachability/lost_allocations.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <vector>

#include "reporters/reachability/pointer_search.hpp"
#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/core/memory/own_memory.hpp"
#include "runtime_hooks/driver/context_idle.hpp"
#include "runtime_hooks/driver/device_reading.hpp"
#include "runtime_hooks/driver/inside_context.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"
#include "runtime_hooks/pool/packing/pages.hpp"
#include "shim/reachability/driver_probes.hpp"
#include "shim/support/log.hpp"

namespace cuwarden::shim {
namespace {

using ledger::RegionId;

// Longest search, if the user has not asked for a whole one.
constexpr std::uint64_t longest_search_ns = 2'000'000'000;

// Registers that a function has to preserve lie in so many bytes below its frame's address, where
// the compiler has stored them.
constexpr std::uint64_t bytes_of_registers = 64;

constinit std::atomic<ReachabilityMode> search_mode{ReachabilityMode::off};
// Time of the ledger at which find_lost_in_interpreter() has searched; 0: it has not. Allocations
// from before have their results.
constinit std::atomic<std::uint64_t> searched_until_ns{0};
// True while one thread searches. Another one that ends the process meanwhile does not search, too.
constinit std::atomic<bool> is_searching{false};

// The allocations to search for, and the kinds of probes that they need.
struct Wanted {
  std::vector<reachability::Block> blocks;
  std::vector<ledger::RecordView> records;
  unsigned kinds = 0;
  std::vector<reachability::Range> managed;  // managed memory, by address
  std::vector<std::uint64_t> on_device;      // addresses of allocations in device memory
  ContextId context;  // a context that one of the allocations belongs to; 0: none has one
};

ProbeKinds probe_of(Kind kind) {
  switch (kind) {
    case Kind::pinned:
    case Kind::registered:
      return probe_pinned;
    case Kind::managed:
      return probe_managed;
    case Kind::stream_ordered:
      return probe_stream_ordered;
    case Kind::vmm:
      return probe_vmm;
    case Kind::array:
      return probe_array;
    default:
      return probe_device;
  }
}

bool is_handle(Space space) {
  return space != Space::pointer && space != Space::registered && space != Space::vmm_mapping;
}

// Returns what a search needs for the live allocations that were made at the ledger's time
// `since_ns` or later; 0: for all. Implicit memory, such as that of streams, and blocks of
// frameworks are left out.
Wanted wanted_of(const ledger::Reader& reader, std::uint64_t since_ns) {
  Wanted wanted;
  const std::uint64_t rows = reader.rows(RegionId::records);
  for (std::uint64_t row = 1; row < rows; ++row) {
    const auto record = reader.record(row);
    if (!record || record->time_ns < since_ns) continue;
    // The addresses at which virtual memory is mapped belong to the record of its handle.
    const bool counts_elsewhere = (record->flags & ledger::record_counts_no_bytes) != 0;
    const auto counted = counts_elsewhere ? reader.record(record->related) : record;
    const auto group = counted ? reader.group(counted->group.value) : std::nullopt;
    if (!group || !is_asked_for(group->kind)) continue;
    // The driver does not know the blocks of cuwarden's pool, but the pages that some of them
    // begin.
    const bool is_in_pool = (record->flags & ledger::record_in_pool) != 0;
    const bool is_drivers = !is_in_pool || record->address.value % pool::page_bytes == 0;
    const ProbeKinds kind =
        is_in_pool && group->kind == Kind::device ? probe_vmm : probe_of(group->kind);
    reachability::Block block;
    block.start = record->address.value;
    block.bytes = is_handle(record->space) ? 1 : record->bytes.value;
    block.id = static_cast<std::uint32_t>(counts_elsewhere ? record->related : row);
    block.kind = is_drivers ? DriverProbes::kind_of(kind, block.start,
                                                    is_in_pool ? pool::page_bytes : block.bytes)
                            : reachability::no_records;
    wanted.blocks.push_back(block);
    if (group->kind == Kind::managed)
      wanted.managed.push_back({block.start, block.start + block.bytes});
    if (group->kind == Kind::device || group->kind == Kind::stream_ordered)
      wanted.on_device.push_back(block.start);
    if (!counts_elsewhere) wanted.records.push_back(*record);
    if (is_drivers) wanted.kinds |= kind;
    // A memory pool takes its memory from the driver as virtual memory.
    if (kind == probe_stream_ordered) wanted.kinds |= probe_vmm;
    if (record->context.value != 0) wanted.context = record->context;
  }
  std::ranges::sort(wanted.managed, {}, &reachability::Range::start);
  return wanted;
}

std::vector<reachability::Range> own_ranges() {
  std::vector<reachability::Range> ranges;
  OwnMemory::each([&](std::uint64_t start, std::uint64_t bytes) {
    // Memory is mapped in whole pages.
    ranges.push_back({start, round_up(start + bytes, cuwarden::page_bytes)});
  });
  std::ranges::sort(ranges, {}, &reachability::Range::start);
  return ranges;
}

// Stores the results in the ledger's records of allocations that have not ended meanwhile.
void store(ledger::Writer& ledger, const Wanted& wanted, const reachability::FoundPointers& found) {
  for (const ledger::RecordView& record : wanted.records) {
    const auto reach = static_cast<unsigned>(found.reach[record.id.value]);
    ledger::CertaintyChange change;
    change.set = static_cast<std::uint8_t>(reach << ledger::record_reach_shift);
    change.clear = static_cast<std::uint8_t>(ledger::record_reach_bits & ~change.set);
    ledger.allocations.change_certainty(record.id, record.time_ns, change);
  }
}

// Makes all results unknown that say that no pointer was found. Returns true if there were such.
bool doubt_lost(reachability::FoundPointers& found) {
  bool was_any = false;
  for (Reach& reach : found.reach) {
    if (reach != Reach::lost && reach != Reach::interior) continue;
    reach = Reach::unknown;
    was_any = true;
  }
  return was_any;
}

// Calls work() in the context of the allocations if the driver is idle there, so that it can be
// asked without a long wait. Returns true if it did.
bool when_idle(hooks::Session& session, ContextId context, FunctionRef<void()> work) noexcept {
  if (session.captures.any()) return false;
  bool is_done = false;
  driver::in_context(session.real, context, [&] {
    const driver::RelaxedCaptures relaxed(session.real);
    if (!relaxed || !driver::is_idle(session.real, context)) return CUDA_SUCCESS;
    work();
    is_done = true;
    return CUDA_SUCCESS;
  });
  return is_done;
}

// Allocates the probes. Without memory for their list, there are none.
void make_probes(hooks::Session& session, const Wanted& wanted,
                 std::optional<DriverProbes>& probes) noexcept {
  const DeviceOrdinal device = session.contexts.device_of(wanted.context);
  if (device == no_device) return;
  when_idle(session, wanted.context, [&] {
    try {
      probes.emplace(session.real, device, wanted.kinds, session.allocations.freed_addresses);
    } catch (...) {
      probes.reset();
    }
  });
}

// Frees the probes. If the driver has got work meanwhile, they are left to the end of the process.
void free_probes(hooks::Session& session, const Wanted& wanted,
                 std::optional<DriverProbes>& probes) noexcept {
  if (!probes || when_idle(session, wanted.context, [&] { probes.reset(); })) return;
  probes->abandon();
  probes.reset();
}

// Stores how a search ended. `is_second`: true if it was only for allocations that were made after
// an earlier search; a failure of that one stays stored.
void note(hooks::Session& session, ReachSearch outcome, bool is_second = false) noexcept {
  std::atomic<std::uint64_t>& noted = session.ledger.file.header().reach_search;
  const auto first = static_cast<ReachSearch>(noted.load(std::memory_order_relaxed));
  if (is_second && first != ReachSearch::not_made && first != ReachSearch::complete) return;
  noted.store(static_cast<std::uint64_t>(outcome), std::memory_order_relaxed);
}

// Searches for allocations that were made at the ledger's time `since_ns` or later; 0: for all.
void search(hooks::Session& session, const void* frame, bool may_ask_driver,
            std::uint64_t since_ns) noexcept {
  const ReachabilityMode mode = search_mode.load(std::memory_order_relaxed);
  ledger::Header& header = session.ledger.file.header();
  const bool is_second = since_ns != 0;
  const auto note_outcome = [&](ReachSearch outcome) { note(session, outcome, is_second); };
  if (mode == ReachabilityMode::off) return note_outcome(ReachSearch::switched_off);
  const std::uint64_t begun_ns = now_ns();
  std::uint64_t probes_ns = 0;
  try {
    ledger::ReadError error;
    const auto reader = ledger::Reader::open(session.ledger.file.bytes(), error);
    if (!reader) return;
    Wanted wanted = wanted_of(*reader, since_ns);
    if (wanted.blocks.empty() && is_second) return;
    reachability::FoundPointers found;
    if (wanted.blocks.empty()) {
      found.outcome = ReachSearch::complete;
    } else {
      std::optional<DriverProbes> probes;
      if (may_ask_driver && wanted.kinds != 0) make_probes(session, wanted, probes);
      probes_ns = now_ns() - begun_ns;
      reachability::PointerSearch search;
      search.blocks = std::move(wanted.blocks);
      search.allocations = static_cast<std::uint32_t>(reader->rows(RegionId::records));
      if (probes) search.probes = probes->blocks();
      search.excluded = own_ranges;
      search.stack_pointer = reinterpret_cast<std::uint64_t>(frame) - bytes_of_registers;
      const auto may_go_on = [&] {
        return mode == ReachabilityMode::on || now_ns() - begun_ns < longest_search_ns;
      };
      search.managed = std::move(wanted.managed);
      search.on_device = std::move(wanted.on_device);
      try {
        found = reachability::search_pointers(search, may_go_on);
      } catch (...) {
        found.outcome = ReachSearch::no_memory;
        found.reach.assign(search.allocations, Reach::unknown);
      }
      if (session.sites.interpreter_is_gone() && doubt_lost(found) &&
          found.outcome == ReachSearch::complete)
        found.outcome = ReachSearch::interpreter_ended;
      free_probes(session, wanted, probes);
      store(session.ledger, wanted, found);
    }
    log_debug(
        formatted("searched {} MiB for pointers in {} passes; {} us went to blocks of the driver's",
                  found.scanned_bytes >> 20, found.passes, probes_ns / 1000));
    if (!is_second) header.reach_scanned_bytes.store(0, std::memory_order_relaxed);
    header.reach_scanned_bytes.fetch_add(found.scanned_bytes, std::memory_order_relaxed);
    note_outcome(found.outcome);
  } catch (...) {
    note_outcome(ReachSearch::no_memory);
  }
  if (!is_second) header.reach_ns.store(0, std::memory_order_relaxed);
  header.reach_ns.fetch_add(now_ns() - begun_ns, std::memory_order_relaxed);
}

}  // namespace

void begin_searches(hooks::Session& session, ReachabilityMode mode) noexcept {
  search_mode.store(mode, std::memory_order_relaxed);
  searched_until_ns.store(0, std::memory_order_relaxed);
  is_searching.store(false, std::memory_order_relaxed);
  // Notes that the interpreter runs, if it does.
  session.sites.interpreter_is_gone();
}

// A process may go on for long without its interpreter. The results of a search long ago say little
// then.
void find_lost_allocations(hooks::Session& session, const void* frame,
                           bool may_ask_driver) noexcept {
  constexpr std::uint64_t longest_end_ns = 10'000'000'000;
  if (is_searching.exchange(true)) {
    note(session, ReachSearch::out_of_time);
    return;
  }
  std::uint64_t since_ns = searched_until_ns.load(std::memory_order_relaxed);
  if (since_ns != 0 && session.ledger.time.now_ns() - since_ns > longest_end_ns) since_ns = 0;
  search(session, frame, may_ask_driver, since_ns);
  is_searching.store(false);
}

void find_lost_in_interpreter(hooks::Session& session, const void* frame,
                              bool may_ask_driver) noexcept {
  if (is_searching.exchange(true)) return;
  const std::uint64_t begun_ns = session.ledger.time.boundary();
  search(session, frame, may_ask_driver, 0);
  searched_until_ns.store(begun_ns, std::memory_order_relaxed);
  is_searching.store(false);
}

}  // namespace cuwarden::shim
