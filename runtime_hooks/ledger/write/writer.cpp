// Puts the parts together; each function does one thing and keeps errno as it was.
#include "runtime_hooks/ledger/write/writer.hpp"

#include <ctime>
#include <new>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/ledger/write/process_facts.hpp"
#include "runtime_hooks/ledger/write/writer_state.hpp"

namespace cuwarden::ledger {
namespace {

// What the pool served lies in none of the driver's.
bool may_be_in_slab(std::uint8_t flags) { return (flags & record_in_pool) == 0; }

constexpr auto relaxed = std::memory_order_relaxed;

constinit std::atomic<std::uint32_t> next_serial{1};

std::uint64_t read_clock(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

Writer* Writer::create(const Creation& creation) noexcept {
  const ErrnoGuard guard;
  Mapping memory = Mapping::anonymous(sizeof(State));
  if (!memory) return nullptr;
  auto* const state = new (memory.data()) State;
  Storage& storage = state->storage;
  const LedgerName name = ledger_name(creation.pid);
  if (!storage.create({creation.folders, name.text, creation.largest_file_bytes,
                       creation.hook_names.size(), creation.without_populate})) {
    return nullptr;
  }
  record_process(storage, creation.pid);
  Header& header = storage.header();
  header.process.report_path = storage.store(creation.report_path);
  const bool made = state->lanes.create(next_serial.fetch_add(1, relaxed), header.process.pid) &&
                    state->totals.create() && state->slabs.create() &&
                    state->modules.create(header.process.program) && state->stacks.create() &&
                    state->groups.create() && storage.allocate_hooks(creation.hook_names.size());
  if (!made) {
    storage.file().remove();
    return nullptr;
  }
  Hook* const hooks = storage.rows<Hook>(RegionId::hooks);
  for (std::size_t i = 0; i < creation.hook_names.size(); ++i) {
    hooks[i].name = storage.store(creation.hook_names[i]);
  }
  state->start_monotonic_ns = header.process.start_monotonic_ns;
  header.checksum = header_checksum(header);
  header.published.store(1, std::memory_order_release);
  memory.release();
  return &state->self;
}

std::string_view Writer::path() const noexcept { return state_.storage.file().path(); }
void Writer::remove_file() noexcept { state_.storage.file().remove(); }

std::span<const std::byte> Writer::bytes() const noexcept {
  const BackingFile& file = state_.storage.file();
  return {file.base(), file.geometry().total_bytes};
}

Header& Writer::header() noexcept { return state_.storage.header(); }

std::uint64_t Writer::now_ns() const noexcept {
  return read_clock(CLOCK_MONOTONIC) - state_.start_monotonic_ns;
}
std::uint64_t Writer::recently_ns() const noexcept {
  const std::uint64_t tick = read_clock(CLOCK_MONOTONIC_COARSE);
  return tick > state_.start_monotonic_ns ? tick - state_.start_monotonic_ns : 0;
}

StackId Writer::intern_stack(std::span<const Frame> frames, bool truncated, bool* added) noexcept {
  bool is_new = false;
  const StackId id = state_.stacks.intern(frames, truncated, is_new);
  if (added != nullptr) *added = is_new;
  return id;
}

GroupId Writer::group(const GroupKey& key) noexcept { return state_.groups.get(key); }

DeviceOrdinal Writer::device_of(GroupId id) const noexcept {
  return DeviceOrdinal{state_.storage.rows<Group>(RegionId::groups)[id.value].device};
}

GroupId Writer::group_of_stack_in(GroupId known, HookId api, Kind kind,
                                  DeviceOrdinal device) noexcept {
  const Group& group = state_.storage.rows<Group>(RegionId::groups)[known.value];
  if (group.api == api.value && group.kind == kind && group.device == device.value) return known;
  return state_.groups.get({StackId{group.stack}, api, kind, device});
}

void Writer::modules_changed() noexcept {
  state_.modules.remove_gone([this](ModuleTable::Gone range) { state_.stacks.retire(range); });
}

// --- allocations

void Writer::add(NewRecord& given) noexcept {
  if (given.group.value == 0) return;  // the groups are full, and the header says so
  if (given.time_ns == 0) given.time_ns = now_ns();
  given.thread = thread();
  const std::uint64_t now = given.time_ns;
  const bool counts = (given.flags & record_counts_no_bytes) == 0;
  if (counts) {
    state_.totals.allocated(given.group, given.bytes.value, now);
    if (may_be_in_slab(given.flags))
      state_.slabs.allocated(given.group, given.address, given.bytes.value, now);
  }
  const RecordIndex::Inserted made = state_.records.insert(given.space, given.address, given);
  if (made.id.value == 0) {
    if (counts) {
      state_.totals.undo_allocated(given.group, given.bytes.value, now);
      if (may_be_in_slab(given.flags))
        state_.slabs.freed(given.group, given.address, given.bytes.value, now);
    }
    add_reason(reason_ledger_full);
  }
  if (made.replaced.value != 0) {
    header().superseded.fetch_add(1, relaxed);
    add_reason(reason_superseded);
    const Record& old = state_.records.row(made.replaced);
    if ((old.flags & record_counts_no_bytes) == 0) {
      state_.totals.freed(GroupId{old.group}, old.bytes, now);
      if (may_be_in_slab(old.flags))
        state_.slabs.freed(GroupId{old.group}, given.address, old.bytes, now);
    }
    state_.records.recycle(made.replaced);
  }
}

TakenRecord Writer::take(Space space, DeviceAddress address) noexcept {
  TakenRecord taken;
  if (state_.records.take(space, address, taken.fields)) {
    taken.space = space;
    taken.address = address;
    taken.taken_ns = recently_ns();
    if ((taken.fields.flags & record_counts_no_bytes) == 0) {
      state_.totals.freed(taken.fields.group, taken.fields.bytes.value, taken.taken_ns);
      if (may_be_in_slab(taken.fields.flags))
        state_.slabs.freed(taken.fields.group, address, taken.fields.bytes.value, taken.taken_ns);
    }
  }
  return taken;
}

void Writer::put_back(const TakenRecord& taken) noexcept {
  if (!taken) return;
  const RecordFields& fields = taken.fields;
  const bool counts = (fields.flags & record_counts_no_bytes) == 0;
  const std::uint64_t now = now_ns();
  if (counts) {
    state_.totals.undo_freed(fields.group, fields.bytes.value, now);
    if (may_be_in_slab(fields.flags))
      state_.slabs.allocated(fields.group, taken.address, fields.bytes.value, now);
  }
  switch (state_.records.restore(taken.space, taken.address, fields)) {
    case RecordIndex::Restored::yes:
      return;
    case RecordIndex::Restored::address_in_use:
      // It has been handed out again meanwhile, so this allocation is gone after all.
      header().superseded.fetch_add(1, relaxed);
      add_reason(reason_superseded);
      break;
    case RecordIndex::Restored::no_room:
      add_reason(reason_ledger_full);
      break;
  }
  if (!counts) return;
  state_.totals.freed(fields.group, fields.bytes.value, now);
  if (may_be_in_slab(fields.flags))
    state_.slabs.freed(fields.group, taken.address, fields.bytes.value, now);
}

bool Writer::opened_again(Space space, DeviceAddress address) noexcept {
  return state_.records.add_reference(space, address);
}

bool Writer::closed_not_last(Space space, DeviceAddress address) noexcept {
  return state_.records.drop_reference(space, address);
}
void Writer::count_unknown_free() noexcept { header().unknown_frees.fetch_add(1, relaxed); }

Writer::Refused Writer::refused(const Refusal& refusal) noexcept {
  return state_.incidents.refused(refusal, thread(), now_ns());
}
Writer::Refused Writer::failed(const Refused& known, const Refusal& refusal) noexcept {
  return state_.incidents.failed(known, refusal, thread(), now_ns());
}
void Writer::set_fact(IncidentId id, Fact fact, std::uint64_t value) noexcept {
  state_.incidents.set_fact(id, fact, value);
}
void Writer::publish_incident(IncidentId id) noexcept { state_.incidents.publish(id); }
void Writer::add_process(IncidentId id, std::uint32_t pid, std::uint64_t bytes) noexcept {
  state_.incidents.add_process(id, pid, bytes);
}
void Writer::add_slab_share(IncidentId id, const SlabShare& share) noexcept {
  state_.incidents.add_slab_share(id, share);
}
void Writer::add_slab_class(IncidentId id, const SlabClassRow& row) noexcept {
  state_.incidents.add_slab_class(id, row);
}

void Writer::add_rung(IncidentId id, const RungRow& row) noexcept {
  state_.incidents.add_rung(id, row);
}

void Writer::rescued(IncidentId id, Rung by, ByteCount bytes) noexcept {
  state_.incidents.rescued(id, by, bytes.value);
}

void Writer::add_slabs(IncidentId id, std::span<const SlabRow> slabs) noexcept {
  state_.incidents.add_slabs(id, slabs);
}
void Writer::set_growth(std::uint64_t holder, std::uint64_t bytes_per_minute) noexcept {
  state_.incidents.set_growth(holder, bytes_per_minute);
}
void Writer::recovered(IncidentId id, std::uint32_t times) noexcept {
  state_.incidents.recovered(id, times);
}

void Writer::release_context(ContextId context) noexcept {
  const std::uint64_t used = state_.storage.used(RegionId::records);
  const std::uint64_t now = now_ns();
  for (std::uint32_t i = 1; i < used; ++i) {
    const RecordId id{i};
    const Record& record = state_.records.row(id);
    if (!RecordIndex::is_live(record) || load_field(record.context) != context.value ||
        (load_field(record.flags) & record_owned_by_context) == 0) {
      continue;
    }
    // The row may have changed hands since it was looked at.
    if (!state_.records.remove(id, &context)) continue;
    if ((record.flags & record_counts_no_bytes) == 0) {
      state_.totals.released(GroupId{record.group}, record.bytes, now);
      if (may_be_in_slab(record.flags))
        state_.slabs.released(GroupId{record.group}, {record.address}, record.bytes);
    }
    state_.records.recycle(id);
  }
}

// --- virtual memory

void Writer::handle_created(NewRecord given) noexcept {
  if (given.group.value == 0) return;
  if (given.time_ns == 0) given.time_ns = now_ns();
  given.thread = thread();
  given.references = 1;
  if (state_.virtual_memory.created(given.address, given)) {
    header().superseded.fetch_add(1, relaxed);
    add_reason(reason_superseded);
  }
}

void Writer::handle_retained(DeviceAddress handle) noexcept {
  state_.virtual_memory.retained(handle);
}

bool Writer::handle_retained_from_mapping(DeviceAddress address, DeviceAddress handle) noexcept {
  RecordFields fields;
  fields.time_ns = now_ns();
  fields.thread = thread();
  return state_.virtual_memory.retained_from_mapping(address, handle, fields);
}

bool Writer::handle_release_begin(DeviceAddress handle) noexcept {
  return state_.virtual_memory.release_begin(handle, now_ns());
}

void Writer::handle_release_undo(DeviceAddress handle) noexcept {
  state_.virtual_memory.release_undo(handle, now_ns());
}

void Writer::mapped(DeviceAddress address, ByteCount bytes, DeviceAddress handle,
                    GroupId group) noexcept {
  RecordFields fields;
  fields.group = group;
  fields.bytes = bytes;
  fields.time_ns = now_ns();
  fields.thread = thread();
  state_.virtual_memory.mapped(address, handle, fields);
}

bool Writer::unmap_begin(DeviceAddress address, ByteCount bytes) noexcept {
  return state_.virtual_memory.unmap_begin(address, bytes, now_ns());
}

void Writer::unmap_undo(DeviceAddress address, ByteCount bytes) noexcept {
  state_.virtual_memory.unmap_undo(address, bytes, now_ns());
}

// --- everything else

void Writer::count_call(HookId hook) noexcept { state_.lanes.count_call(hook); }

// Row 0 is nobody's.
std::uint64_t Writer::unhooked_lookups() noexcept {
  const std::uint64_t used = state_.storage.used(RegionId::unhooked_lookups);
  return used == 0 ? 0 : used - 1;
}

void Writer::count_unhooked_lookup(std::string_view name) noexcept {
  const Storage& storage = state_.storage;
  NamedCount* const rows = storage.rows<NamedCount>(RegionId::unhooked_lookups);
  const char* const strings = storage.rows<char>(RegionId::strings);
  const LedgerLocked locked(state_.names_lock, state_.storage);
  if (!locked) return;
  const std::uint64_t used = storage.used(RegionId::unhooked_lookups);
  for (std::uint64_t i = 1; i < used; ++i) {
    if (name == std::string_view(strings + rows[i].name.offset, rows[i].name.length)) {
      rows[i].count.fetch_add(1, relaxed);
      return;
    }
  }
  const std::uint64_t row = state_.storage.allocate(RegionId::unhooked_lookups, 1);
  if (row == 0) return add_reason(reason_names_missing);
  rows[row].name = state_.storage.store(name);
  rows[row].count.store(1, relaxed);
  rows[row].state.store(1, std::memory_order_release);
}

void Writer::State::set_named_value(RegionId region, std::string_view name, std::string_view value,
                                    std::uint32_t source) noexcept {
  const LedgerLocked locked(names_lock, storage);
  if (!locked) return;
  const std::uint64_t row = storage.allocate(region, 1);
  if (row == 0) return storage.add_reason(reason_names_missing);
  NamedValue& stored = storage.rows<NamedValue>(region)[row];
  stored.source = source;
  stored.name = storage.store(name);
  stored.value = storage.store(value);
  stored.state.store(1, std::memory_order_release);
}

void Writer::set_setting(std::string_view name, std::string_view value,
                         bool from_environment) noexcept {
  state_.set_named_value(RegionId::settings, name, value, from_environment ? 1 : 0);
}

void Writer::set_environment(std::string_view name, std::string_view value) noexcept {
  state_.set_named_value(RegionId::environment, name, value, 1);
}

void Writer::sample_host_rss(ByteCount bytes) noexcept {
  state_.totals.sample_host_rss(bytes.value, now_ns());
}

void Writer::set_versions(int driver, int runtime) noexcept {
  if (driver > 0) header().driver_version.store(static_cast<std::uint32_t>(driver), relaxed);
  if (runtime > 0) header().runtime_version.store(static_cast<std::uint32_t>(runtime), relaxed);
}

void Writer::set_end(EndReason reason, int exit_status, bool status_known) noexcept {
  header().exit_status.store(static_cast<std::uint32_t>(exit_status), relaxed);
  header().exit_status_known.store(status_known ? 1 : 0, relaxed);
  header().end_reason.store(static_cast<std::uint32_t>(reason), std::memory_order_release);
}

void Writer::add_reason(Reason reason) noexcept { state_.storage.add_reason(reason); }
void Writer::make_room_ahead() noexcept { state_.storage.make_room_ahead(); }

void Writer::add_shim_time(std::uint64_t ns) noexcept { header().shim_ns.fetch_add(ns, relaxed); }

}  // namespace cuwarden::ledger
