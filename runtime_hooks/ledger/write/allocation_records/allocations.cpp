#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"

#include <algorithm>

#include "runtime_hooks/core/atomic_field.hpp"

namespace cuwarden::ledger {

namespace {

// Returns false for memory that the pool served, which is in none of the driver's slabs.
bool may_be_in_slab(std::uint8_t flags) { return (flags & record_in_pool) == 0; }

}  // namespace

void Allocations::add(NewRecord& given) noexcept {
  if (given.group.value == 0) return;  // no room for another group; the ledger's header says so
  if (given.time_ns == 0) given.time_ns = time_.now_ns();
  given.thread = threads_.mine();
  const std::uint64_t now = given.time_ns;
  const bool counts = (given.flags & record_counts_no_bytes) == 0;
  if (counts) {
    totals_.allocated(given.group, given.bytes.value, now);
    if (may_be_in_slab(given.flags))
      slabs_.allocated(given.group, given.address, given.bytes.value, now);
  }
  const RecordIndex::Inserted made = records_.insert(given.space, given.address, given);
  if (made.id.value == 0) {
    if (counts) {
      totals_.undo_allocated(given.group, given.bytes.value, now);
      if (may_be_in_slab(given.flags))
        slabs_.freed(given.group, given.address, given.bytes.value, now);
    }
    storage_.add_reason(reason_ledger_full);
  }
  if (made.replaced.value != 0) {
    storage_.header().superseded.fetch_add(1, relaxed);
    storage_.add_reason(reason_superseded);
    const Record& old = records_.row(made.replaced);
    if ((old.flags & record_counts_no_bytes) == 0) {
      totals_.freed(GroupId{old.group}, old.bytes, now, 0);
      if (may_be_in_slab(old.flags))
        slabs_.freed(GroupId{old.group}, given.address, old.bytes, now);
    }
    records_.recycle(made.replaced);
  }
}

TakenRecord Allocations::take(Space space, DeviceAddress address) noexcept {
  TakenRecord taken;
  if (records_.take(space, address, taken.fields)) {
    taken.space = space;
    taken.address = address;
    taken.taken_ns = time_.recently_ns();
    if ((taken.fields.flags & record_counts_no_bytes) == 0) {
      totals_.freed(taken.fields.group, taken.fields.bytes.value, taken.taken_ns,
                    taken.taken_ns - std::min(taken.fields.time_ns, taken.taken_ns));
      if (may_be_in_slab(taken.fields.flags))
        slabs_.freed(taken.fields.group, address, taken.fields.bytes.value, taken.taken_ns);
    }
  }
  return taken;
}

void Allocations::put_back(const TakenRecord& taken) noexcept {
  if (!taken) return;
  const RecordFields& fields = taken.fields;
  const bool counts = (fields.flags & record_counts_no_bytes) == 0;
  const std::uint64_t now = time_.now_ns();
  if (counts) {
    totals_.undo_freed(fields.group, fields.bytes.value, now);
    if (may_be_in_slab(fields.flags))
      slabs_.allocated(fields.group, taken.address, fields.bytes.value, now);
  }
  switch (records_.restore(taken.space, taken.address, fields)) {
    case RecordIndex::Restored::yes:
      return;
    case RecordIndex::Restored::address_in_use:
      // The address was handed out again meanwhile, so this allocation has ended.
      storage_.header().superseded.fetch_add(1, relaxed);
      storage_.add_reason(reason_superseded);
      break;
    case RecordIndex::Restored::no_room:
      storage_.add_reason(reason_ledger_full);
      break;
  }
  if (!counts) return;
  totals_.freed(fields.group, fields.bytes.value, now, 0);
  if (may_be_in_slab(fields.flags))
    slabs_.freed(fields.group, taken.address, fields.bytes.value, now);
}

bool Allocations::grow(Space space, DeviceAddress address, std::uint64_t bytes,
                       CertaintyChange change) noexcept {
  const GroupId group = records_.add_bytes(space, address, bytes, change);
  if (group.value == 0) return false;
  if (bytes != 0) totals_.learned_size(group, bytes, time_.recently_ns());
  return true;
}

bool Allocations::change_certainty(RecordId id, std::uint64_t time_ns,
                                   CertaintyChange change) noexcept {
  return records_.change_certainty(id, time_ns, change);
}

bool Allocations::opened_again(Space space, DeviceAddress address) noexcept {
  return records_.change_references(space, address, 1);
}

bool Allocations::closed_not_last(Space space, DeviceAddress address) noexcept {
  return records_.change_references(space, address, -1);
}
void Allocations::count_unknown_free() noexcept {
  storage_.header().unknown_frees.fetch_add(1, relaxed);
}

void Allocations::release(RecordId id, ContextId context, Released released,
                          std::uint64_t now_ns) noexcept {
  const Record& record = records_.row(id);
  if (!RecordIndex::is_live(record) || load_field(record.context) != context.value ||
      (load_field(record.flags) & record_owned_by_context) == 0)
    return;
  // The row may have been freed and reused since it was looked at.
  if (!records_.remove(id, &context)) return;
  const GroupId group{record.group};
  if ((record.flags & record_counts_no_bytes) == 0) {
    totals_.released(group, record.bytes, now_ns);
    if (may_be_in_slab(record.flags)) slabs_.released(group, {record.address}, record.bytes);
  }
  released(group, record.bytes);
  records_.recycle(id);
}

void Allocations::release_context(ContextId context, Released released) noexcept {
  const std::uint64_t used = storage_.used(RegionId::records);
  const std::uint64_t now = time_.now_ns();
  for (std::uint32_t i = 1; i < used; ++i) release(RecordId{i}, context, released, now);
}

void Allocations::release(Space space, DeviceAddress address, ContextId context,
                          Released released) noexcept {
  const RecordId id = records_.find(space, address);
  if (id.value != 0) release(id, context, released, time_.now_ns());
}

std::uint64_t Allocations::slab_locked_bytes_on(DeviceOrdinal ordinal) noexcept {
  const Series* const series =
      totals_.series_of(static_cast<std::uint8_t>(Kind::device), ordinal.value);
  return series == nullptr ? 0 : slabs_.locked_bytes(*series);
}

}  // namespace cuwarden::ledger
