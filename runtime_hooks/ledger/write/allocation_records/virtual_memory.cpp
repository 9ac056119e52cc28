// A handle's record is in one of three states: findable and live (references > 0); live but no
// longer findable (released, still mapped: the driver may give its value to a new handle); ended.
#include "runtime_hooks/ledger/write/allocation_records/virtual_memory.hpp"

#include <algorithm>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"

namespace cuwarden::ledger {
namespace {

// Number of changes by release_begin() and unmap_begin() that are remembered: far more than calls
// can be in flight at once.
constexpr std::uint64_t remembered = 4096;

// True for a second handle value of memory that has a record. It keeps that record live, as a
// mapping does.
bool is_alias(const Record& record) { return (record.flags & record_counts_no_bytes) != 0; }

}  // namespace

RecordId VirtualMemory::underlying(RecordId handle) const noexcept {
  if (handle.value != 0 && is_alias(row(handle))) {
    return RecordId{static_cast<std::uint32_t>(row(handle).related)};
  }
  return handle;
}

// --- changes that may have to be undone

void VirtualMemory::remember(const Pending& entry) noexcept {
  if (newest_ - oldest_ == pending_capacity_) {
    const std::uint64_t larger = pending_capacity_ == 0 ? 256 : pending_capacity_ * 2;
    Mapping memory = Mapping::anonymous(larger * sizeof(Pending));
    if (!memory) {
      // Without memory for more, the oldest change can no longer be undone. Without any ring, this
      // change cannot, and the row of its record is never reused. The totals are right.
      if (pending_capacity_ == 0) return;
      if (pending(oldest_).ended) records_.recycle(RecordId{pending(oldest_).row});
      ++oldest_;
    } else {
      auto* const entries = static_cast<Pending*>(memory.data());
      for (std::uint64_t i = oldest_; i != newest_; ++i) entries[i & (larger - 1)] = pending(i);
      pending_ = std::move(memory);
      pending_capacity_ = larger;
    }
  }
  pending(newest_++) = entry;
}

void VirtualMemory::trim() noexcept {
  for (; newest_ - oldest_ > remembered; ++oldest_) {
    if (pending(oldest_).ended) records_.recycle(RecordId{pending(oldest_).row});
  }
}

void VirtualMemory::revive(RecordId id, std::uint64_t now_ns) noexcept {
  for (std::uint64_t i = newest_; i != oldest_; --i) {
    Pending& entry = pending(i - 1);
    if (entry.row == id.value && entry.ended) {
      entry.ended = false;
      break;
    }
  }
  Record& record = row(id);
  if (!is_alias(record)) totals_.undo_freed(GroupId{record.group}, record.bytes, now_ns);
  records_.revive_hidden(id);
}

void VirtualMemory::end_if_unused(RecordId id, Pending entry, std::uint64_t now_ns) noexcept {
  Record& record = row(id);
  entry.row = id.value;
  if (record.references == 0 && record.mappings == 0) {
    records_.end_hidden(id);
    entry.ended = true;
    if (!is_alias(record))
      totals_.freed(GroupId{record.group}, record.bytes, now_ns,
                    now_ns - std::min(record.time_ns, now_ns));
  }
  if (entry.ended || entry.released) remember(entry);
}

// --- handles

void VirtualMemory::created(NewRecord given) noexcept {
  if (given.group.value == 0) return;
  if (given.time_ns == 0) given.time_ns = time_.now_ns();
  given.thread = threads_.mine();
  given.references = 1;
  const DeviceAddress handle = given.address;
  const RecordFields& fields = given;
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return;
  trim();
  const RecordId old = records_.hide(Space::vmm_handle, handle);
  if (old.value != 0) drop_reference(old, true, ++operation_, fields.time_ns);
  totals_.allocated(fields.group, fields.bytes.value, fields.time_ns);
  if (records_.insert(Space::vmm_handle, handle, fields).id.value == 0) {
    totals_.undo_allocated(fields.group, fields.bytes.value, fields.time_ns);
    storage_.add_reason(reason_ledger_full);
  }
  if (old.value != 0) {
    // No hook saw the free of the handle that had this value.
    storage_.header().superseded.fetch_add(1, std::memory_order_relaxed);
    storage_.add_reason(reason_superseded);
  }
}

bool VirtualMemory::retained_from_mapping(DeviceAddress address, DeviceAddress handle) noexcept {
  const std::uint64_t now_ns = time_.now_ns();
  const ThreadId thread = threads_.mine();
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return false;
  if (const RecordId known = records_.find(Space::vmm_handle, handle); known.value != 0) {
    store_field(row(known).references, row(known).references + 1);
    return true;
  }
  const RecordId mapping = mapping_around(address);
  if (mapping.value == 0 || row(mapping).related == 0) return false;
  const RecordId id{static_cast<std::uint32_t>(row(mapping).related)};
  Record& record = row(id);
  if (record.references == 0) {
    if (!records_.show(id, handle)) return false;
    store_field(record.references, 1);
    return true;
  }
  RecordFields fields;
  fields.time_ns = now_ns;
  fields.thread = thread;
  fields.group = GroupId{record.group};
  fields.bytes = ByteCount{record.bytes};
  fields.related = id.value;
  fields.references = 1;
  fields.flags = record_counts_no_bytes;
  if (records_.insert(Space::vmm_handle, handle, fields).id.value == 0) {
    storage_.add_reason(reason_ledger_full);
    return false;
  }
  store_field(record.mappings, record.mappings + 1);
  return true;
}

void VirtualMemory::drop_reference(RecordId id, bool key_is_gone, std::uint64_t operation,
                                   std::uint64_t now_ns) noexcept {
  Record& record = row(id);
  store_field(record.references, key_is_gone ? 0 : record.references - 1);
  if (record.references > 0) return;
  if (!key_is_gone) records_.hide(Space::vmm_handle, DeviceAddress{record.address});
  const std::uint64_t held = is_alias(record) ? record.related : 0;
  Pending entry{};
  entry.released = true;
  entry.operation = operation;
  entry.address = record.address;
  end_if_unused(id, entry, now_ns);
  if (held != 0) drop_mapping(RecordId{static_cast<std::uint32_t>(held)}, operation, now_ns);
}

bool VirtualMemory::release_begin(DeviceAddress handle) noexcept {
  const std::uint64_t now_ns = time_.now_ns();
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return false;
  trim();
  const RecordId id = records_.find(Space::vmm_handle, handle);
  if (id.value == 0) return false;
  drop_reference(id, false, ++operation_, now_ns);
  return true;
}

void VirtualMemory::release_undo(DeviceAddress handle) noexcept {
  const std::uint64_t now_ns = time_.now_ns();
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return;
  if (const RecordId id = records_.find(Space::vmm_handle, handle); id.value != 0) {
    store_field(row(id).references, row(id).references + 1);
    return;
  }
  for (std::uint64_t i = newest_; i != oldest_; --i) {
    Pending& entry = pending(i - 1);
    if (!entry.released || entry.address != handle.value) continue;
    const RecordId id{entry.row};
    Record& record = row(id);
    entry.released = false;
    if (!records_.show(id, handle)) return;
    store_field(record.references, 1);
    if (!RecordIndex::is_live(record)) revive(id, now_ns);
    if (is_alias(record)) {
      const RecordId held = underlying(id);
      store_field(row(held).mappings, row(held).mappings + 1);
      if (!RecordIndex::is_live(row(held))) revive(held, now_ns);
    }
    return;
  }
}

// --- mappings

RecordId VirtualMemory::mapping_around(DeviceAddress address) noexcept {
  if (live_mappings_ == 0) return {};
  for (std::uint64_t at = address.value & ~(step_ - 1);; at -= step_) {
    const RecordId id = records_.find(Space::vmm_mapping, DeviceAddress{at});
    if (id.value != 0) return address.value - at < row(id).bytes ? id : RecordId{};
    if (at < step_ || address.value - at >= largest_mapping_) return {};
  }
}

void VirtualMemory::mapped(DeviceAddress address, ByteCount bytes, DeviceAddress handle,
                           GroupId group) noexcept {
  RecordFields fields;
  fields.group = group;
  fields.bytes = bytes;
  fields.time_ns = time_.now_ns();
  fields.thread = threads_.mine();
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return;
  trim();
  if (const RecordId old = records_.find(Space::vmm_mapping, address); old.value != 0) {
    take_mapping(old, ++operation_, 0, 0, fields.time_ns);
  }
  const RecordId id = underlying(records_.find(Space::vmm_handle, handle));
  fields.related = id.value;
  fields.flags = record_counts_no_bytes;
  if (records_.insert(Space::vmm_mapping, address, fields).id.value == 0) {
    storage_.add_reason(reason_ledger_full);
    return;
  }
  if (id.value != 0) {
    store_field(row(id).mappings, row(id).mappings + 1);
    // An imported handle's size becomes known now, because a handle is always mapped whole.
    if (row(id).bytes == 0) learn_size(id, fields.bytes.value, fields.time_ns);
  }
  ++live_mappings_;
  const std::uint64_t alignment = std::max<std::uint64_t>(address.value & -address.value, 1);
  step_ = step_ == 0 ? alignment : std::min(step_, alignment);
  largest_mapping_ = std::max(largest_mapping_, fields.bytes.value);
}

void VirtualMemory::learn_size(RecordId handle, std::uint64_t bytes,
                               std::uint64_t now_ns) noexcept {
  Record& record = row(handle);
  store_field(record.bytes, bytes);
  if (!is_alias(record)) totals_.learned_size(GroupId{record.group}, bytes, now_ns);
}

void VirtualMemory::drop_mapping(RecordId handle, std::uint64_t operation,
                                 std::uint64_t now_ns) noexcept {
  Record& record = row(handle);
  store_field(record.mappings, record.mappings - 1);
  Pending entry{};
  entry.operation = operation;
  end_if_unused(handle, entry, now_ns);
}

void VirtualMemory::take_mapping(RecordId id, std::uint64_t operation, std::uint64_t address,
                                 std::uint64_t bytes, std::uint64_t now_ns) noexcept {
  if (!records_.remove(id)) return;
  --live_mappings_;
  remember({.row = id.value,
            .ended = true,
            .released = false,
            .unmapped = true,
            .operation = operation,
            .address = address,
            .bytes = bytes});
  const RecordId handle{static_cast<std::uint32_t>(row(id).related)};
  if (handle.value != 0) drop_mapping(handle, operation, now_ns);
}

bool VirtualMemory::unmap_begin(DeviceAddress from, ByteCount bytes) noexcept {
  const std::uint64_t now_ns = time_.now_ns();
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return false;
  trim();
  const std::uint64_t operation = ++operation_;
  if (live_mappings_ == 0) return false;
  bool found = false;
  const std::uint64_t start = from.value;
  const std::uint64_t end = start + std::min(bytes.value, UINT64_MAX - start);
  const std::uint64_t rows = storage_.used(RegionId::records);
  if ((end - start) / step_ > rows) {
    // The range is huge and mostly empty, so a look at all records is faster than one at all
    // addresses.
    for (std::uint32_t i = 1; i < rows; ++i) {
      const Record& record = row(RecordId{i});
      if (!RecordIndex::is_live(record) || load_field(record.space) != Space::vmm_mapping) continue;
      const std::uint64_t at = load_field(record.address);
      if (at < start || at >= end) continue;
      take_mapping(RecordId{i}, operation, start, bytes.value, now_ns);
      found = true;
    }
    return found;
  }
  std::uint64_t at = start;
  while (at < end && live_mappings_ != 0) {
    std::uint64_t step = step_ - (at & (step_ - 1));
    const RecordId id = records_.find(Space::vmm_mapping, DeviceAddress{at});
    if (id.value != 0) {
      step = std::max(step, row(id).bytes);
      take_mapping(id, operation, start, bytes.value, now_ns);
      found = true;
    }
    if (step > end - at) break;
    at += step;
  }
  return found;
}

void VirtualMemory::unmap_undo(DeviceAddress from, ByteCount bytes) noexcept {
  const std::uint64_t now_ns = time_.now_ns();
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return;
  std::uint64_t operation = 0;
  for (std::uint64_t i = newest_; i != oldest_; --i) {
    Pending& entry = pending(i - 1);
    if (operation != 0 && entry.operation != operation) break;
    if (!entry.unmapped || entry.address != from.value || entry.bytes != bytes.value) continue;
    operation = entry.operation;
    const RecordId id{entry.row};
    if (!records_.restore(id)) continue;  // the address is in use again
    entry.unmapped = entry.ended = false;
    ++live_mappings_;
    const RecordId handle{static_cast<std::uint32_t>(row(id).related)};
    if (handle.value == 0) continue;
    store_field(row(handle).mappings, row(handle).mappings + 1);
    if (!RecordIndex::is_live(row(handle))) revive(handle, now_ns);
  }
}

}  // namespace cuwarden::ledger
