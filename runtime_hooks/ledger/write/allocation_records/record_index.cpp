// Linear probing with backward-shift deletion: no tombstones, so that a process that allocates and
// frees for a week probes as little as on its first day.
#include "runtime_hooks/ledger/write/allocation_records/record_index.hpp"

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"

namespace cuwarden::ledger {
namespace {

constexpr std::uint32_t first_slots = 512;  // one page
constexpr std::uint32_t fresh_rows = 16;

constexpr std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash); }
constexpr std::uint32_t slot_tag(std::uint64_t slot) {
  return static_cast<std::uint32_t>(slot >> 32);
}
constexpr std::uint32_t slot_row(std::uint64_t slot) { return static_cast<std::uint32_t>(slot); }
constexpr std::uint64_t make_slot(std::uint32_t tag, std::uint32_t row) {
  return std::uint64_t{tag} << 32 | row;
}

}  // namespace

// Inlines the functions that every call of the program goes through.
#define CUWARDEN_HOT [[gnu::always_inline]] inline

CUWARDEN_HOT std::uint64_t RecordIndex::hash_of(Space space, DeviceAddress address) noexcept {
  return hash_pair(address.value, static_cast<std::uint64_t>(space));
}

CUWARDEN_HOT std::uint32_t RecordIndex::slot_of(const Partition& partition, std::uint64_t hash,
                                                Space space, DeviceAddress address) const noexcept {
  if (partition.slots == nullptr) return no_slot;
  const std::uint32_t tag = tag_of(hash);
  for (std::uint32_t i = tag & partition.mask;; i = (i + 1) & partition.mask) {
    const std::uint64_t slot = partition.slots[i];
    if (slot == 0) return no_slot;
    if (slot_tag(slot) != tag) continue;
    const Record& record = row(RecordId{slot_row(slot)});
    if (record.address == address.value && record.space == space) return i;
  }
}

CUWARDEN_HOT bool RecordIndex::make_room(Partition& partition) noexcept {
  // At most three quarters of the slots are used. Without a table, mask and count are 0.
  return __builtin_expect(
             (std::uint64_t{partition.count} + 1) * 4 <= std::uint64_t{partition.mask} * 3, true) ||
         grow(partition);
}

[[gnu::noinline, gnu::cold]] bool RecordIndex::grow(Partition& partition) noexcept {
  const std::uint32_t capacity = partition.slots == nullptr ? 0 : partition.mask + 1;
  const std::uint32_t larger = capacity == 0 ? first_slots : capacity * 2;
  Mapping memory = larger == 0 ? Mapping() : Mapping::anonymous(std::size_t{larger} * 8);
  // Without memory for a larger table the present one is filled up, except for one empty slot, at
  // which a search ends.
  if (!memory) return partition.count + 1 < capacity;

  auto* const slots = static_cast<std::uint64_t*>(memory.data());
  for (std::uint32_t i = 0; i < capacity; ++i) {
    if (partition.slots[i] == 0) continue;
    std::uint32_t at = slot_tag(partition.slots[i]) & (larger - 1);
    while (slots[at] != 0) at = (at + 1) & (larger - 1);
    slots[at] = partition.slots[i];
  }
  partition.slots = slots;
  partition.mask = larger - 1;
  partition.memory = std::move(memory);
  return true;
}

CUWARDEN_HOT void RecordIndex::put(Partition& partition, std::uint64_t hash, RecordId id) noexcept {
  std::uint32_t at = tag_of(hash) & partition.mask;
  while (partition.slots[at] != 0) at = (at + 1) & partition.mask;
  partition.slots[at] = make_slot(tag_of(hash), id.value);
  ++partition.count;
}

CUWARDEN_HOT RecordId RecordIndex::cut(Partition& partition, std::uint32_t hole) noexcept {
  const RecordId id{slot_row(partition.slots[hole])};
  for (std::uint32_t i = (hole + 1) & partition.mask; partition.slots[i] != 0;
       i = (i + 1) & partition.mask) {
    const std::uint32_t home = slot_tag(partition.slots[i]) & partition.mask;
    // An entry may move back into the hole if its home is not between the hole and itself.
    if (((i - home) & partition.mask) < ((i - hole) & partition.mask)) continue;
    partition.slots[hole] = partition.slots[i];
    hole = i;
  }
  partition.slots[hole] = 0;
  --partition.count;
  return id;
}

CUWARDEN_HOT RecordId RecordIndex::new_row(Partition& partition) noexcept {
  if (partition.free_row != 0) {
    const RecordId id{partition.free_row};
    partition.free_row = row(id).thread;
    return id;
  }
  if (partition.fresh == partition.fresh_end && !take_fresh_rows(partition)) return {};
  return RecordId{partition.fresh++};
}

[[gnu::noinline, gnu::cold]] bool RecordIndex::take_fresh_rows(Partition& partition) noexcept {
  std::uint32_t rows = fresh_rows;
  std::uint64_t first = storage_.allocate(RegionId::records, rows);
  if (first == 0) first = storage_.allocate(RegionId::records, rows = 1);
  if (first == 0) return false;
  partition.fresh = static_cast<std::uint32_t>(first);
  partition.fresh_end = partition.fresh + rows;
  return true;
}

CUWARDEN_HOT void RecordIndex::give_back(Partition& partition, RecordId id) noexcept {
  store_field(row(id).thread, partition.free_row);
  partition.free_row = id.value;
}

CUWARDEN_HOT void RecordIndex::end(Record& record) noexcept {
  record.state.store(record.state.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void RecordIndex::publish(Record& record) noexcept { end(record); }

bool RecordIndex::change_references(Space space, DeviceAddress address, int change) noexcept {
  const std::uint64_t hash = hash_of(space, address);
  Partition& partition = partition_of(address, hash);
  const LedgerLocked locked(partition.lock, storage_);
  if (!locked) return false;
  const std::uint32_t slot = slot_of(partition, hash, space, address);
  if (slot == no_slot) return false;
  Record& record = row(RecordId{slot_row(partition.slots[slot])});
  const std::uint32_t references = record.references + static_cast<std::uint32_t>(change);
  if (record.references == 0 || references == 0) return false;
  store_field(record.references, references);
  return true;
}

namespace {
void apply(CertaintyChange change, Record& record) noexcept {
  store_field(record.flags, static_cast<std::uint8_t>((record.flags | change.set) & ~change.clear));
  if (change.difference != 0) store_field(record.difference, change.difference);
}
}  // namespace

GroupId RecordIndex::add_bytes(Space space, DeviceAddress address, std::uint64_t bytes,
                               CertaintyChange change) noexcept {
  const std::uint64_t hash = hash_of(space, address);
  Partition& partition = partition_of(address, hash);
  const LedgerLocked locked(partition.lock, storage_);
  if (!locked) return {};
  const std::uint32_t slot = slot_of(partition, hash, space, address);
  if (slot == no_slot) return {};
  Record& record = row(RecordId{slot_row(partition.slots[slot])});
  store_field(record.bytes, record.bytes + bytes);
  apply(change, record);
  return {record.group};
}

// The lock keeps another record from getting the row.
bool RecordIndex::change_certainty(RecordId id, std::uint64_t time_ns,
                                   CertaintyChange change) noexcept {
  Record& record = row(id);
  const DeviceAddress address{load_field(record.address)};
  Partition& partition = partition_of(address, hash_of(load_field(record.space), address));
  const LedgerLocked locked(partition.lock, storage_);
  if (!locked || !is_live(record) || record.time_ns != time_ns) return false;
  apply(change, record);
  return true;
}

CUWARDEN_HOT RecordId RecordIndex::put_new(Partition& partition, std::uint64_t hash, Space space,
                                           DeviceAddress address,
                                           const RecordFields& fields) noexcept {
  if (!make_room(partition)) return {};
  const RecordId id = new_row(partition);
  if (id.value == 0) return {};
  Record& record = row(id);
  store_field(record.group, fields.group.value);
  store_field(record.address, address.value);
  store_field(record.bytes, fields.bytes.value);
  store_field(record.time_ns, fields.time_ns);
  store_field(record.context, fields.context.value);
  store_field(record.related, fields.related);
  store_field(record.thread, fields.thread.value);
  store_field(record.mappings, 0);
  store_field(record.references, fields.references);
  store_field(record.space, space);
  store_field(record.flags, fields.flags);
  store_field(record.difference, fields.difference);
  publish(record);
  put(partition, hash, id);
  return id;
}

RecordIndex::Inserted RecordIndex::insert(Space space, DeviceAddress address,
                                          const RecordFields& fields) noexcept {
  const std::uint64_t hash = hash_of(space, address);
  Partition& partition = partition_of(address, hash);
  const LedgerLocked locked(partition.lock, storage_);
  if (!locked) return {};
  Inserted result;
  if (const std::uint32_t slot = slot_of(partition, hash, space, address); slot != no_slot) {
    result.replaced = cut(partition, slot);
    end(row(result.replaced));
  }
  result.id = put_new(partition, hash, space, address, fields);
  return result;
}

RecordIndex::Restored RecordIndex::restore(Space space, DeviceAddress address,
                                           const RecordFields& fields) noexcept {
  const std::uint64_t hash = hash_of(space, address);
  Partition& partition = partition_of(address, hash);
  const LedgerLocked locked(partition.lock, storage_);
  if (!locked) return Restored::no_room;
  if (slot_of(partition, hash, space, address) != no_slot) return Restored::address_in_use;
  return put_new(partition, hash, space, address, fields).value != 0 ? Restored::yes
                                                                     : Restored::no_room;
}

bool RecordIndex::take(Space space, DeviceAddress address, RecordFields& fields) noexcept {
  const std::uint64_t hash = hash_of(space, address);
  Partition& partition = partition_of(address, hash);
  const LedgerLocked locked(partition.lock, storage_);
  if (!locked) return false;
  const std::uint32_t slot = slot_of(partition, hash, space, address);
  if (slot == no_slot) return false;
  const RecordId id = cut(partition, slot);
  Record& record = row(id);
  fields.group = GroupId{record.group};
  fields.bytes = ByteCount{record.bytes};
  fields.time_ns = record.time_ns;
  fields.context = ContextId{record.context};
  fields.related = record.related;
  fields.thread = ThreadId{record.thread};
  fields.references = record.references;
  fields.flags = record.flags;
  fields.difference = record.difference;
  end(record);
  give_back(partition, id);
  return true;
}

bool RecordIndex::remove(RecordId id, const ContextId* owner) noexcept {
  Record& record = row(id);
  const Space space = load_field(record.space);
  const DeviceAddress address{load_field(record.address)};
  const std::uint64_t hash = hash_of(space, address);
  Partition& partition = partition_of(address, hash);
  const LedgerLocked locked(partition.lock, storage_);
  if (!locked) return false;
  const std::uint32_t slot = slot_of(partition, hash, space, address);
  if (slot == no_slot || slot_row(partition.slots[slot]) != id.value) return false;
  if (owner != nullptr &&
      (record.context != owner->value || (record.flags & record_owned_by_context) == 0)) {
    return false;
  }
  cut(partition, slot);
  end(record);
  return true;
}

bool RecordIndex::restore(RecordId id) noexcept {
  Record& record = row(id);
  const DeviceAddress address{record.address};
  const std::uint64_t hash = hash_of(record.space, address);
  Partition& partition = partition_of(address, hash);
  const LedgerLocked locked(partition.lock, storage_);
  if (!locked) return false;
  if (slot_of(partition, hash, record.space, address) != no_slot || !make_room(partition))
    return false;
  publish(record);
  put(partition, hash, id);
  return true;
}

void RecordIndex::recycle(RecordId id) noexcept {
  const Record& record = row(id);
  const DeviceAddress address{record.address};
  Partition& partition = partition_of(address, hash_of(record.space, address));
  const LedgerLocked locked(partition.lock, storage_);
  if (!locked) return;
  give_back(partition, id);
}

RecordId RecordIndex::find(Space space, DeviceAddress address) noexcept {
  const std::uint64_t hash = hash_of(space, address);
  Partition& partition = partition_of(address, hash);
  const LedgerLocked locked(partition.lock, storage_);
  if (!locked) return {};
  const std::uint32_t slot = slot_of(partition, hash, space, address);
  return slot == no_slot ? RecordId{} : RecordId{slot_row(partition.slots[slot])};
}

RecordId RecordIndex::hide(Space space, DeviceAddress address) noexcept {
  const std::uint64_t hash = hash_of(space, address);
  Partition& partition = partition_of(address, hash);
  const LedgerLocked locked(partition.lock, storage_);
  if (!locked) return {};
  const std::uint32_t slot = slot_of(partition, hash, space, address);
  return slot == no_slot ? RecordId{} : cut(partition, slot);
}

bool RecordIndex::show(RecordId id, DeviceAddress address) noexcept {
  Record& record = row(id);
  const std::uint64_t hash = hash_of(record.space, address);
  Partition& partition = partition_of(address, hash);
  const LedgerLocked locked(partition.lock, storage_);
  if (!locked) return false;
  if (slot_of(partition, hash, record.space, address) != no_slot || !make_room(partition))
    return false;
  store_field(record.address, address.value);
  put(partition, hash, id);
  return true;
}

void RecordIndex::end_hidden(RecordId id) noexcept { end(row(id)); }
void RecordIndex::revive_hidden(RecordId id) noexcept { publish(row(id)); }

#undef CUWARDEN_HOT

}  // namespace cuwarden::ledger
