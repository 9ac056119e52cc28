// Finds the record of (space, address), and owns the rows of the records table. The index has 256
// partitions. Each has a lock of its own, an open-addressing table in private memory (8 bytes a
// slot: half a hash and the row), a list of free rows and a range of unused ones.
//
// Each 2 MiB of addresses use 16 of the partitions. The driver and most allocators cut pieces for
// one thread from 2 MiB at a time. So threads that have memory of their own seldom use the same
// partition, and each partition's cache lines stay with one thread. Threads that share 2 MiB seldom
// wait for one another, since there are 16 partitions.
//
// All changes of one key are made under its partition's lock; readers without locks go by a row's
// `state`. A removed row keeps its contents until it is recycled, so that it can be restored.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/hash.hpp"
#include "runtime_hooks/core/memory/mapping.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/format/record_fields.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"

namespace cuwarden::ledger {

// The index of the records table, and the owner of its rows. A record's key is its address and the
// address's space: the kind of number that the address is, such as a pointer or a handle. At most
// one live record in the index has a key. All threads may call the functions at any time. If a lock
// cannot be had (LedgerLocked), a function does nothing, and returns as if there were no such
// record, or no room.
class RecordIndex {
 public:
  // `storage`: the memory of the ledger whose records are indexed; must outlive the object.
  explicit RecordIndex(Storage& storage) noexcept : storage_(storage) {}

  // Returns the record in row `id`, which may be live or ended. The index must have handed out the
  // row before.
  Record& row(RecordId id) const noexcept {
    return storage_.rows<Record>(RegionId::records)[id.value];
  }

  // The result of insert(): the rows of the new record, and of the older one that it has replaced.
  struct Inserted {
    RecordId id;  // row of the new record; 0: no record was added, for lack of room
    // Row of an older record with the new record's space and address, which insert() has ended. The
    // caller must pass the row to recycle() after reading its fields. 0: there was no such record.
    RecordId replaced;
  };
  // Ends the live record with this space and address, copies its fields into the last argument, and
  // frees its row for another record. Returns false, and changes nothing, if there is no such
  // record.
  bool take(Space, DeviceAddress, RecordFields&) noexcept;
  // Adds a live record with this space (kind of number that the address is, such as a pointer or a
  // handle), address and fields. Ends an older live record with this space and address; the caller
  // must then pass the older record's row, Inserted::replaced, to recycle(). If there is no room,
  // adds nothing and Inserted::id is 0.
  Inserted insert(Space, DeviceAddress, const RecordFields&) noexcept;
  // Results of restore(). `yes`: the record is live again. `address_in_use`: the driver has given
  // the address to another allocation since take(). `no_room`: the ledger has no row left, or the
  // index no slot.
  enum class Restored { yes, address_in_use, no_room };
  // Makes a record live again, in the same row or another one, after take() has ended it. The
  // arguments are the record's space and address, and the fields that take() has copied.
  Restored restore(Space, DeviceAddress, const RecordFields&) noexcept;

  // Ends the live record that is in this row. If the caller found the row without a lock, the row
  // may have got another record since then. The row keeps its contents until the caller passes it
  // to recycle() or restore(). `owner`: if not null, the record is ended only if this context owns
  // its memory (record_owned_by_context). Returns false, and changes nothing, if the row has no
  // live record or `owner` does not own its memory.
  bool remove(RecordId, const ContextId* owner = nullptr) noexcept;
  // Makes the record in this row live again, after remove() has ended it. Returns false, and
  // changes nothing, if its address has another live record by now, or if the index has no room.
  bool restore(RecordId) noexcept;
  // Frees a row for another record. The row's present record must have ended, and its contents must
  // not be needed any more.
  void recycle(RecordId) noexcept;

  // Counts one more reference to the live record with this space and address, or one less.
  // `change`: 1 or -1. Returns false, and changes nothing, if there is no such record, if the
  // record counts no references, or if it would have none.
  bool change_references(Space, DeviceAddress, int change) noexcept;

  // Adds `bytes` to the size of the live record with this space and address, and changes its flags
  // (RecordFlag bits and Reach) and its `difference`. Returns the record's group. Returns 0, and
  // changes nothing, if there is no such record.
  GroupId add_bytes(Space, DeviceAddress, std::uint64_t bytes, CertaintyChange) noexcept;
  // Changes the flags (RecordFlag bits and Reach) and the `difference` of the live record in this
  // row, also of one that hide() has removed from the index. Returns false, and changes nothing, if
  // the row has no live record with this time. `time_ns`: RecordFields::time_ns, by which another
  // record in the row is told.
  bool change_certainty(RecordId, std::uint64_t time_ns, CertaintyChange) noexcept;
  // Returns the row of the live record with this space and address; 0 if there is none.
  RecordId find(Space, DeviceAddress) noexcept;
  // Removes the live record with this space and address from the index. The record stays live, but
  // another record may then have the address: the driver may give a handle's value to other memory.
  // Returns the record's row; 0 if there was no such record.
  RecordId hide(Space, DeviceAddress) noexcept;
  // Adds a live record to the index again, after hide() has removed it. The record gets this
  // address, which may differ from its earlier one. Returns false, and changes nothing, if the
  // address has another live record, or if the index has no room.
  bool show(RecordId, DeviceAddress) noexcept;
  // Ends a live record that is not in the index, because hide() has removed it. The row keeps its
  // contents until recycle() frees it.
  void end_hidden(RecordId) noexcept;
  // Makes a record live again, after end_hidden() has ended it. The record stays out of the index.
  void revive_hidden(RecordId) noexcept;

  // Returns true if the record is live: its allocation has not ended. Takes no lock.
  static bool is_live(const Record& record) noexcept {
    return (record.state.load(std::memory_order_acquire) & 1) != 0;
  }

 private:
  static constexpr std::size_t partition_count = 256;   // number of partitions of the index
  static constexpr std::uint32_t no_slot = UINT32_MAX;  // result of slot_of(): there is no slot

  // A part of the index, chosen by a record's key, with an open-addressing table of its own.
  struct alignas(64) Partition {
    FutexLock lock;           // held while a function uses or changes this partition
    std::uint32_t mask = 0;   // number of `slots`, minus 1; 0 if `slots` is null
    std::uint32_t count = 0;  // number of `slots` that are not empty
    // First row of the list of rows that ended records have left; Record::thread is the next one.
    // 0: the list is empty.
    std::uint32_t free_row = 0;
    // Rows [fresh, fresh_end) of the records table, which are this partition's and never had a
    // record. Equal numbers: there are none.
    std::uint32_t fresh = 0, fresh_end = 0;
    // The partition's table of slots; null before its first record. A slot holds the lower half of
    // a key's hash in its upper 32 bits, and the row of the record in its lower 32 bits. A slot of
    // 0 is empty.
    std::uint64_t* slots = nullptr;
    Mapping memory;  // the memory of `slots`; empty before the partition's first record
  };

  // Returns a hash of a record's key, its space and address.
  static std::uint64_t hash_of(Space space, DeviceAddress address) noexcept;
  // Returns the partition for a key. `hash`: hash_of() the key.
  Partition& partition_of(DeviceAddress address, std::uint64_t hash) noexcept {
    return partitions_[(address.value >> 21) * hash_salt[0] >> 60 << 4 | hash >> 60];
  }
  static_assert(partition_count == 1 << 8);
  // Returns the index in Partition::slots of the live record with this space and address; no_slot
  // if there is none. `hash`: hash_of() the space and address. The caller holds the partition's
  // lock.
  std::uint32_t slot_of(const Partition&, std::uint64_t hash, Space, DeviceAddress) const noexcept;
  // Makes sure that the partition's table has room for one more record. Returns false if it has not
  // and there is no memory. The caller holds the partition's lock.
  static bool make_room(Partition&) noexcept;
  // Moves the partition's table to memory with twice as many slots. Returns false if there is no
  // memory and no room for one more record. The caller holds the partition's lock.
  static bool grow(Partition&) noexcept;
  // Adds this row, under the hash of its record's key, to the partition's table, which must have
  // room.
  static void put(Partition&, std::uint64_t hash, RecordId) noexcept;
  // Empties this slot of the partition's table, and returns the row of the record that it had. The
  // record itself does not change.
  static RecordId cut(Partition&, std::uint32_t slot) noexcept;
  // Returns a row of the partition for a new record; 0 if there is no room. The caller holds the
  // partition's lock.
  RecordId new_row(Partition&) noexcept;
  // Gives the partition a new range of unused rows, in Partition::fresh and fresh_end. Returns
  // false if the ledger has no room.
  bool take_fresh_rows(Partition&) noexcept;
  // Adds a live record with this key (space and address) and these fields to the partition. `hash`:
  // hash_of() the key. Returns the record's row; 0 if there is no room. The index must have no
  // record with the key. The caller holds the partition's lock.
  RecordId put_new(Partition&, std::uint64_t hash, Space, DeviceAddress,
                   const RecordFields&) noexcept;
  // Adds the row of an ended record to the partition's list of free rows. The caller holds the
  // partition's lock.
  void give_back(Partition&, RecordId) noexcept;
  // Marks a live record as ended, by an even Record::state.
  static void end(Record&) noexcept;
  // Marks an ended or new record as live, by an odd Record::state.
  static void publish(Record&) noexcept;

  Storage& storage_;                       // the memory of the ledger, with its tables
  Partition partitions_[partition_count];  // the parts of the index
};

}  // namespace cuwarden::ledger
