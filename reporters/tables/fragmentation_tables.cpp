#include "reporters/tables/fragmentation_tables.hpp"

#include <algorithm>
#include <optional>

#include "reporters/model/each_row.hpp"
#include "reporters/tables/memory_tables.hpp"
#include "reporters/words/quantities.hpp"
#include "runtime_hooks/ledger/read/free_bytes.hpp"

namespace cuwarden {
namespace {

using ledger::RegionId;

std::optional<Account> account_of(const ledger::DeviceView& device,
                                  const std::vector<ledger::SeriesView>& all,
                                  const Fragmentations& fragmentations,
                                  const LibrariesImplicit& libraries = {}) {
  // The account is signed, because threads may allocate while the device is read.
  const std::uint64_t used = device.total_bytes - ledger::free_bytes_now(device, all);
  // A larger number is that of a damaged ledger, and no account adds up to it.
  if (device.at == ledger::ReadingAt::never || device.ordinal.value < 0 ||
      used > model::largest_number)
    return std::nullopt;
  Account account(used);
  for (const ledger::SeriesView& series : all) {
    if (series.device == device.ordinal && is_in_device_account(series.kind))
      account.add_live(series.kind, series.live_bytes,
                       {device.spilled_bytes, device.spilled_in_stream_order_bytes});
  }
  if (const auto found = fragmentations.find(device.ordinal.value); found != fragmentations.end()) {
    account.add(Holder::slab_waste, found->second.locked_bytes);
    account.add(Holder::rounding_waste, found->second.rounding_bytes);
  }
  account.add(Holder::mempool_idle, device.memory_pool_idle_bytes.value_or(0));
  account.add(Holder::pool, device.arena.unused_bytes());
  account.add_other_processes(device.other_processes_bytes);
  account.add(Holder::context, device.implicit.contexts());
  const auto known = libraries.find(device.ordinal.value);
  const ledger::ImplicitBytes of_libraries =
      known == libraries.end() ? ledger::ImplicitBytes{} : known->second;
  account.add(Holder::local_memory, device.implicit.local_memory);
  account.add(Holder::heap, device.implicit.heap);
  account.add_objects({device.implicit.modules, device.implicit.streams, device.implicit.graphs},
                      {of_libraries.modules, of_libraries.streams, of_libraries.graphs});
  return account;
}

}  // namespace

ContextBytes context_bytes(const ledger::Reader& reader) {
  ContextBytes result;
  each_row(reader, RegionId::devices, &ledger::Reader::device, [&](const auto& device) {
    const std::uint64_t bytes = device.implicit.contexts();
    // Larger numbers are those of a damaged ledger.
    if (device.at != ledger::ReadingAt::never && device.ordinal.value >= 0 &&
        device.total_bytes - device.free_bytes <= model::largest_number &&
        bytes <= model::largest_number)
      result[device.ordinal.value] = bytes;
  });
  return result;
}

void put_account(const Account& account, model::AccountItem row, Put<model::AccountItem> put) {
  for (const auto& [item, bytes] : account.items()) {
    row.item = item;
    row.bytes = static_cast<std::int64_t>(bytes);
    put(row);
  }
  row.item = "unexplained";
  row.bytes = account.unexplained();
  put(row);
}

void put_accounts(const ledger::Reader& reader, const std::vector<ledger::SeriesView>& all,
                  const Fragmentations& fragmentations, const LibrariesImplicit& libraries,
                  const std::vector<IncidentCase>& incidents, Put<model::AccountItem> put) {
  each_row(reader, RegionId::devices, &ledger::Reader::device, [&](const auto& device) {
    if (const auto account = account_of(device, all, fragmentations, libraries))
      put_account(*account, {*device_id(device.ordinal), {}, {}, {}}, put);
  });
  for (const IncidentCase& incident : incidents) {
    if (const auto account = account_of(incident))
      put_account(*account, {*device_id(incident.device), incident.incident.id.value, {}, {}}, put);
  }
}

void put_fragmentation(const ledger::Reader& reader, const std::vector<ledger::SeriesView>& all,
                       const Fragmentations& fragmentations, Put<model::Fragmentation> put) {
  for (const auto& [device, found] : fragmentations) {
    model::Fragmentation row;
    row.device = static_cast<model::Id>(device);
    row.slab_count = found.slabs.size();
    row.slab_locked_bytes = found.locked_bytes;
    row.rounding_bytes = found.rounding_bytes;
    row.page_bytes = found.page_bytes;
    row.step_bytes = found.step_bytes;
    if (found.largest_piece != 0) row.largest_piece_bytes = found.largest_piece;
    if (const auto reading = device_row(reader, DeviceOrdinal{device})) {
      if (const auto account = account_of(*reading, all, fragmentations)) {
        row.at = reading->at == ledger::ReadingAt::exit ? "exit" : "last_call";
        row.mempool_idle_bytes = reading->memory_pool_idle_bytes;
        row.largest_request_bytes =
            largest_request(ledger::free_bytes_now(*reading, all),
                            reading->memory_pool_idle_bytes.value_or(0), found.page_bytes);
        row.excess_bytes =
            account->unexplained() < 0 ? static_cast<std::uint64_t>(-account->unexplained()) : 0;
      }
    }
    put(row);
  }
}

void add_stacks(const ledger::Reader& reader, const Fragmentations& fragmentations,
                CallFrames& frames) {
  for (const auto& [device, all] : fragmentations) {
    for (const auto& [id, holder] : all.holders)
      if (const auto group = reader.group(id)) frames.add_stack(group->stack);
  }
}

std::vector<model::Id> StacksOfGroups::of(std::span<const GroupId> groups) {
  std::vector<model::Id> stacks;
  for (const GroupId id : groups) {
    if (id.value == 0) continue;
    const auto [known, is_new] = known_.try_emplace(id.value);
    if (is_new) known->second = frames_.known_stack_of(reader_.group(id.value));
    const model::MaybeId stack = known->second;
    if (stack && std::ranges::find(stacks, *stack) == stacks.end()) stacks.push_back(*stack);
  }
  return stacks;
}

void put_slab_map(const ledger::Reader& reader, const Fragmentations& fragmentations,
                  const CallFrames& frames, Put<model::Slab> put) {
  StacksOfGroups stacks(reader, frames);
  for (const auto& [device, all] : fragmentations) {
    for (const LiveSlab& slab : all.slabs) {
      // The class has this many slots. The driver cuts pieces in finer steps, so a slab may
      // hold more pieces.
      const std::uint64_t slots = std::max(all.page_bytes / slab.class_bytes, slab.live_count);
      put({.device = static_cast<model::Id>(device),
           .address = address_text(slab.address),
           .class_bytes = slab.class_bytes,
           .slots = slots,
           .live = slab.live_count,
           .stacks = stacks.of(slab.groups)});
    }
  }
}

void put_slab_holders(const ledger::Reader& reader, const Fragmentations& fragmentations,
                      const CallFrames& frames, Put<model::SlabHolder> put) {
  for (const auto& [device, all] : fragmentations) {
    for (const auto& [id, holder] : all.holders)
      put({.device = static_cast<model::Id>(device),
           .stack = frames.known_stack_of(reader.group(id)),
           .count = holder.count,
           .bytes = holder.bytes,
           .locked_bytes = holder.locked_bytes});
  }
}

}  // namespace cuwarden
