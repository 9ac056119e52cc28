#include "runtime_hooks/ledger/write/incidents.hpp"

#include <algorithm>
#include <array>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/ledger/format/group_counts.hpp"

namespace cuwarden::ledger {
namespace {

// The most incidents that are stored: a longer list would not be read. Requests beyond them are
// counted with their group.
constexpr std::uint64_t most_incidents = 1000;
// Groups that are noted of each refusal: less than IncidentHoldings has room for.
constexpr std::size_t most_holders = 8, most_block_holders = 3;

std::uint64_t rescues_of(const Incident& incident) {
  std::uint64_t all = 0;
  for (const std::atomic<std::uint64_t>& rescued : incident.rescued) all += rescued.load(relaxed);
  return all;
}

// True if the refusal gets an incident of its own, although its call site has one. This is so if
// all earlier requests there were served in the end: this one may not be, and then the facts of
// this moment are wanted. The time until the next one grows, so that a program which always
// recovers does not fill the table.
bool is_another_matter(const Incident& known, std::uint64_t now_ns) {
  constexpr std::uint64_t first_wait_ns = 10'000'000'000;
  const std::uint64_t served = known.recovered.load(relaxed) + rescues_of(known);
  const std::uint64_t wait = first_wait_ns << std::min<std::uint32_t>(2 * known.number, 30);
  return served > known.repeats.load(relaxed) && now_ns > known.time_ns + wait / 4;
}

void note_last(Incident& incident, std::uint64_t bytes, std::uint64_t now_ns) {
  incident.last_ns.store(now_ns, relaxed);
  incident.last_bytes.store(bytes, relaxed);
}

}  // namespace

IncidentHolding* IncidentHoldings::of(GroupId group) noexcept {
  for (IncidentHolding& known : all())
    if (known.group == group) return &known;
  if (count_ == most) return nullptr;
  all_[count_].group = group;
  return &all_[count_++];
}

std::uint32_t Incidents::begin(GroupId from, const IncidentFacts& refusal, ThreadId thread,
                               std::uint64_t now_ns, std::uint32_t& latest) noexcept {
  if (storage_.used(RegionId::incidents) > most_incidents) return 0;
  const auto made = static_cast<std::uint32_t>(storage_.allocate(RegionId::incidents, 1));
  if (made == 0) return 0;
  Incident& incident = row({made});
  incident.group = from.value;
  incident.thread = thread.value;
  incident.result = refusal.result;
  incident.time_ns = now_ns;
  incident.bytes = refusal.bytes;
  incident.asked = refusal.asked;
  note_last(incident, refusal.bytes, now_ns);
  for (std::atomic<std::uint64_t>& fact : incident.facts) fact.store(unknown_value, relaxed);
  incident.number = latest == 0 ? 1 : row({latest}).number + 1;
  // Another thread may have stored an incident of this group first. Then this row stays as it is,
  // and no reader finds it.
  return group(from.value).incident.compare_exchange_strong(latest, made, std::memory_order_acq_rel)
             ? made
             : 0;
}

Refused Incidents::refused(GroupId from, const IncidentFacts& refusal, ThreadId thread,
                           std::uint64_t now_ns) noexcept {
  if (from.value == 0) return {};
  Group& site = group(from.value);
  std::uint32_t known = site.incident.load(std::memory_order_acquire);
  if (known == 0 || is_another_matter(row({known}), now_ns))
    if (const std::uint32_t made = begin(from, refusal, thread, now_ns, known); made != 0)
      return {.incident = {made}, .first = true};
  if (known == 0) return {};
  Incident& incident = row({known});
  const Refused again{.incident = {known},
                      .time_ns = now_ns,
                      .last_ns = incident.last_ns.load(relaxed),
                      .last_bytes = incident.last_bytes.load(relaxed)};
  incident.repeats.fetch_add(1, relaxed);
  note_last(incident, refusal.bytes, now_ns);
  return again;
}

Refused Incidents::failed(const Refused& known, GroupId from, const IncidentFacts& refusal,
                          ThreadId thread, std::uint64_t now_ns) noexcept {
  if (from.value != 0 && (refusal.asked == Asked::memory || refusal.asked == Asked::graph))
    group(from.value).failures.fetch_add(1, relaxed);
  if (known.incident.value == 0) return {};
  Incident& before = row(known.incident);
  std::uint32_t now = known.incident.value;
  bool begun = false;
  if (!known.first && before.failed.load(relaxed) == 0 && rescues_of(before) > 0) {
    // Another thread may have begun an incident already, or may do so now.
    now = group(from.value).incident.load(std::memory_order_acquire);
    if (now == known.incident.value)
      if (const std::uint32_t made = begin(from, refusal, thread, now_ns, now); made != 0) {
        now = made;
        begun = true;
      }
  }
  Incident& incident = row({now});
  if (now != known.incident.value) {
    if (!begun) {
      incident.repeats.fetch_add(1, relaxed);
      note_last(incident, refusal.bytes, now_ns);
    }
    before.repeats.fetch_sub(1, relaxed);
    if (before.last_ns.load(relaxed) == known.time_ns)
      note_last(before, known.last_bytes, known.last_ns);
  }
  incident.failed.fetch_add(1, relaxed);
  return {.incident = {now}, .first = begun};
}

template <class Visit>
void Incidents::each_group(std::int32_t device, const Visit& visit) const noexcept {
  const Series* const all = storage_.rows<Series>(RegionId::series);
  const GroupShard* const group_shards = storage_.rows<GroupShard>(RegionId::group_shards);
  const auto shard_at = [group_shards](std::uint32_t group_shard) {
    return group_shards + group_shard;
  };
  const std::uint64_t used = storage_.used(RegionId::series);
  for (std::uint64_t i = 1; i < used; ++i) {
    const Series& series = all[i];
    if (series.state.load(std::memory_order_acquire) != 1 || series.device != device ||
        series.kind == series_host_rss)
      continue;
    for (std::uint32_t at = series.first_group.load(std::memory_order_acquire); at != 0;
         at = group(at).next_in_series)
      visit(at, counts_of(group(at), at, shard_at));
  }
}

namespace {

// The groups of a device that hold most bytes, the largest first.
template <std::size_t most>
class Largest {
 public:
  void add(std::uint32_t group, const GroupCounts& counts) noexcept {
    groups_.back() = {group, counts.live_count, counts.live_bytes};
    for (std::size_t i = most; i > 0 && groups_[i].bytes > groups_[i - 1].bytes; --i)
      std::swap(groups_[i], groups_[i - 1]);
  }
  void put_into(IncidentHoldings& holdings) const noexcept {
    for (std::size_t i = 0; i < most && groups_[i].group != 0; ++i) {
      IncidentHolding& holding = *holdings.of(GroupId{groups_[i].group});
      holding.count = groups_[i].count;
      holding.bytes = groups_[i].bytes;
    }
  }

 private:
  struct Entry {
    std::uint32_t group = 0;
    std::uint64_t count = 0, bytes = 0;
  };
  std::array<Entry, most + 1> groups_{};  // the last one is the candidate
};

}  // namespace

// Blocks of frameworks lie in memory that other groups have, so they are no part of the sums.
void Incidents::measure(DeviceOrdinal device, IncidentFacts& facts,
                        IncidentHoldings& holdings) const noexcept {
  Largest<most_holders> holders;
  Largest<most_block_holders> block_holders;
  each_group(device.value, [&](std::uint32_t at, const GroupCounts& counts) {
    if (counts.live_count == 0) return;
    if (group(at).kind == Kind::framework_block) return block_holders.add(at, counts);
    facts.live_bytes[static_cast<std::size_t>(group(at).kind)] += counts.live_bytes;
    facts.live_count[static_cast<std::size_t>(group(at).kind)] += counts.live_count;
    holders.add(at, counts);
  });
  holders.put_into(holdings);
  block_holders.put_into(holdings);
}

void Incidents::write(IncidentId id, const IncidentFacts& facts,
                      IncidentHoldings& holdings) noexcept {
  Incident& incident = row(id);
  if (incident.state.load(relaxed) == 0) {
    std::copy(facts.live_bytes.begin(), facts.live_bytes.end(), incident.live_bytes);
    std::copy(facts.live_count.begin(), facts.live_count.end(), incident.live_count);
    incident.state.store(1, std::memory_order_release);
  }
  for (std::size_t i = 0; i < fact_count; ++i)
    if (facts.facts[i] != unknown_value)
      incident.facts[i].store(facts.facts[i], std::memory_order_release);
  for (std::size_t i = 0; i < holdings.count_; ++i) {
    const IncidentHolding& holding = holdings.all_[i];
    std::uint32_t& known = holdings.rows_[i];
    if (known == 0) known = add_holder(id, holding);
    if (known == 0) continue;
    IncidentHolder& holder = holder_row(known);
    holder.growth_bytes_per_minute.store(holding.growth_bytes_per_minute.value_or(unknown_value),
                                         std::memory_order_release);
    holder.slab_locked_bytes.store(holding.slab_locked_bytes.value_or(unknown_value),
                                   std::memory_order_release);
  }
}

std::uint32_t Incidents::add_holder(IncidentId id, const IncidentHolding& given) noexcept {
  const auto made = static_cast<std::uint32_t>(storage_.allocate(RegionId::incident_holders, 1));
  if (made == 0) return 0;
  IncidentHolder& holder = holder_row(made);
  holder.incident = id.value;
  holder.group = given.group.value;
  holder.count = given.count;
  holder.bytes = given.bytes;
  holder.growth_bytes_per_minute.store(given.growth_bytes_per_minute.value_or(unknown_value),
                                       relaxed);
  holder.slab_locked_bytes.store(given.slab_locked_bytes.value_or(unknown_value), relaxed);
  holder.state.store(1, std::memory_order_release);
  return made;
}

OtherProcess Incidents::add_process(IncidentId id, const OtherProcess& given) noexcept {
  OtherProcess kept = given;
  const auto keep = [this](std::string_view& text) {
    const StringRef stored = storage_.store(text);
    text = {storage_.rows<char>(RegionId::strings) + stored.offset, stored.length};
    return stored;
  };
  const StringRef program = keep(kept.program), parent_program = keep(kept.parent_program),
                  user = keep(kept.user), job = keep(kept.job), container = keep(kept.container),
                  pod = keep(kept.pod), unit = keep(kept.unit);
  const std::uint64_t made = storage_.allocate(RegionId::incident_processes, 1);
  if (made == 0) return kept;
  IncidentProcess& row = storage_.rows<IncidentProcess>(RegionId::incident_processes)[made];
  row.incident = id.value;
  row.pid = given.pid;
  row.parent = given.parent;
  row.bytes = given.bytes;
  row.start_realtime_ns = given.start_realtime_ns;
  row.seen_by = given.seen_by;
  row.run_state = given.run_state;
  row.is_of_another_user = given.is_of_another_user ? 1 : 0;
  row.program = program;
  row.parent_program = parent_program;
  row.user = user;
  row.job = job;
  row.container = container;
  row.pod = pod;
  row.unit = unit;
  row.state.store(1, std::memory_order_release);
  return kept;
}

void Incidents::add_slab_class(IncidentId id, const SlabClassRow& given) noexcept {
  const std::uint64_t made = storage_.allocate(RegionId::incident_classes, 1);
  if (made == 0) return;
  IncidentClass& row = storage_.rows<IncidentClass>(RegionId::incident_classes)[made];
  row.incident = id.value;
  row.class_bytes = given.class_bytes;
  row.slab_count = given.slab_count;
  row.live_count = given.live_count;
  row.live_bytes = given.live_bytes;
  row.state.store(1, std::memory_order_release);
}

void Incidents::add_slabs(IncidentId id, std::span<const SlabRow> given) noexcept {
  // One incident takes at most half of the room that is left: the last incident, of which the
  // program may have died, needs rows, too.
  const std::uint64_t room =
      storage_.capacity(RegionId::incident_slabs) - storage_.used(RegionId::incident_slabs);
  if (given.size() > room / 2) return;
  const std::uint64_t first = storage_.allocate(RegionId::incident_slabs, given.size());
  if (first == 0) return;
  IncidentSlab* const rows = storage_.rows<IncidentSlab>(RegionId::incident_slabs) + first;
  for (std::size_t i = 0; i < given.size(); ++i) {
    rows[i].incident = id.value;
    rows[i].address = given[i].address.value;
    rows[i].live_count = given[i].live_count;
    rows[i].live_bytes = given[i].live_bytes;
    std::ranges::transform(given[i].groups, rows[i].groups, &GroupId::value);
    rows[i].state.store(1, std::memory_order_release);
  }
}

// Completes the row of a rung that was stored before it ran; otherwise adds a row.
void Incidents::add_rung(IncidentId id, const RungRow& given) noexcept {
  IncidentRung* const rows = storage_.rows<IncidentRung>(RegionId::incident_rungs);
  const std::uint64_t used = storage_.used(RegionId::incident_rungs);
  for (std::uint64_t i = 1; i < used; ++i) {
    IncidentRung& rung = rows[i];
    if (rung.state.load(std::memory_order_acquire) != 1 || rung.incident != id.value ||
        rung.order != given.order)
      continue;
    store_field(rung.duration_ns, given.duration_ns);
    return store_field(rung.outcome, given.outcome);
  }
  const std::uint64_t made = storage_.allocate(RegionId::incident_rungs, 1);
  if (made == 0) return;
  IncidentRung& rung = rows[made];
  rung.incident = id.value;
  rung.duration_ns = given.duration_ns;
  rung.order = given.order;
  rung.rung = given.rung;
  rung.outcome = given.outcome;
  rung.name = storage_.store(given.name);
  rung.state.store(1, std::memory_order_release);
}

void Incidents::leave_out(IncidentId id, Rung rung, LeftOut reason) noexcept {
  row(id).left_out[static_cast<std::size_t>(rung)].store(reason, std::memory_order_release);
}

void Incidents::rescued(IncidentId id, Rung by, std::uint64_t bytes) noexcept {
  Incident& incident = row(id);
  incident.rescued_bytes.fetch_add(bytes, relaxed);
  incident.rescued[static_cast<std::size_t>(by)].fetch_add(1, std::memory_order_release);
}

void Incidents::recovered(IncidentId id, std::uint32_t times) noexcept {
  row(id).recovered.fetch_add(times, relaxed);
}

}  // namespace cuwarden::ledger
