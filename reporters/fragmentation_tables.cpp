#include "reporters/fragmentation_tables.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "reporters/each_row.hpp"
#include "reporters/incident_tables.hpp"
#include "reporters/quantities.hpp"
#include "reporters/slab_rows.hpp"

namespace cuwarden {
namespace {

using ledger::RegionId;

std::optional<Account> account_of(const ledger::DeviceView& device,
                                  const std::vector<ledger::SeriesView>& all,
                                  const Fragmentations& fragmentations) {
  // Signed: what is live is counted a moment later than the device was read.
  const std::uint64_t used = device.total_bytes - device.free_bytes;
  // More is a damaged ledger's: no account adds up to it.
  if (device.at == ledger::ReadingAt::none || device.ordinal.value < 0 || used > largest_number)
    return std::nullopt;
  Account account(used);
  for (const ledger::SeriesView& series : all) {
    if (series.device == device.ordinal && is_in_device_account(series.kind))
      account.add_live(series.kind, series.live_bytes,
                       {device.spilled_bytes, device.spilled_in_stream_order_bytes});
  }
  if (const auto found = fragmentations.find(device.ordinal.value); found != fragmentations.end()) {
    account.add("slab_waste", found->second.locked_bytes);
    account.add("rounding_waste", found->second.rounding_bytes);
  }
  account.add("mempool_idle", device.memory_pool_idle_bytes.value_or(0));
  account.add("pool", device.arena.unused_bytes());
  account.add_other_processes(device.other_processes_bytes);
  account.add("context", device.implicit.contexts());
  account.add("modules", device.implicit.modules);
  account.add("local_memory", device.implicit.local_memory);
  account.add("heap", device.implicit.heap);
  account.add("streams", device.implicit.streams);
  return account;
}

template <class Visit>
void each_device(const ledger::Reader& reader, const Visit& visit) {
  each_row(reader, RegionId::devices, &ledger::Reader::device, visit);
}

void write_slabs(const ledger::Reader& reader, const Fragmentations& fragmentations,
                 const CallFrames& frames, JsonStream& json) {
  json.begin_table("slab_classes");
  for (const auto& [device, all] : fragmentations) {
    for (const auto& [class_bytes, size_class] : all.classes) {
      json.begin_row();
      json.field("device", static_cast<std::uint32_t>(device));
      write_class(class_bytes, size_class, json);
      json.end_row();
    }
  }
  json.end_table();

  json.begin_table("slab_map");
  for (const auto& [device, all] : fragmentations) {
    for (const Slab& slab : all.slabs) {
      json.begin_row();
      json.field("device", static_cast<std::uint32_t>(device));
      json.field("address", address_text(slab.address));
      json.field("class_bytes", slab.class_bytes);
      // Of the class; a slab may have more pieces, for the driver cuts finer.
      json.field("slots", std::max(all.page_bytes / slab.class_bytes, slab.live_count));
      json.field("live", slab.live_count);
      json.end_row();
    }
  }
  json.end_table();

  json.begin_table("slab_holders");
  for (const auto& [device, all] : fragmentations) {
    for (const auto& [id, holder] : all.holders) {
      json.begin_row();
      json.field("device", static_cast<std::uint32_t>(device));
      write_holder(reader, GroupId{id}, holder, frames, json);
      json.end_row();
    }
  }
  json.end_table();
}

}  // namespace

void write_accounts(const ledger::Reader& reader, const std::vector<ledger::SeriesView>& all,
                    const Fragmentations& fragmentations,
                    const std::vector<IncidentCase>& incidents, JsonStream& json) {
  json.begin_table("accounts");
  each_device(reader, [&](const ledger::DeviceView& device) {
    const auto account = account_of(device, all, fragmentations);
    if (!account) return;
    const auto add = [&](const std::string& item, const Row& bytes) {
      Row row;
      row["device"] = device.ordinal.value;
      row["incident"] = nullptr;
      row["item"] = item;
      row["bytes"] = bytes;
      json.row(row);
    };
    for (const auto& [item, bytes] : account->items) add(item, number(bytes));
    add("unexplained", account->unexplained);
  });
  write_incident_accounts(incidents, json);
  json.end_table();
}

void write_fragmentation(const ledger::Reader& reader, const std::vector<ledger::SeriesView>& all,
                         const Fragmentations& fragmentations, const CallFrames& frames,
                         JsonStream& json) {
  json.begin_table("fragmentation");
  for (const auto& [device, found] : fragmentations) {
    std::optional<std::uint64_t> largest, excess, pool_idle;
    std::optional<std::string_view> at;
    if (const auto reading = device_row(reader, DeviceOrdinal{device})) {
      if (const auto account = account_of(*reading, all, fragmentations)) {
        at = reading->at == ledger::ReadingAt::exit ? "exit" : "last_call";
        pool_idle = reading->memory_pool_idle_bytes;
        largest = largest_request(reading->free_bytes, pool_idle.value_or(0), found.page_bytes);
        excess = account->unexplained < 0 ? static_cast<std::uint64_t>(-account->unexplained) : 0;
      }
    }
    json.begin_row();
    json.field("device", static_cast<std::uint32_t>(device));
    json.field("at", at);
    json.field("slab_count", found.slabs.size());
    json.field("slab_locked_bytes", found.locked_bytes);
    json.field("rounding_bytes", found.rounding_bytes);
    json.field("mempool_idle_bytes", pool_idle);
    json.field("largest_request_bytes", largest);
    json.field("page_bytes", found.page_bytes);
    json.field("step_bytes", found.step_bytes);
    json.field("largest_piece_bytes",
               found.largest_piece == 0 ? std::nullopt : std::optional(found.largest_piece));
    json.field("excess_bytes", excess);
    json.end_row();
  }
  json.end_table();
  write_slabs(reader, fragmentations, frames, json);
}

}  // namespace cuwarden
