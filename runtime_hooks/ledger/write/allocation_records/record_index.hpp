// Finds the record of (space, address), and owns the rows of the records table. 256 shards, each
// with a lock of its own, an open-addressing table in private memory (8 bytes a slot: half a hash
// and the row), a list of free rows and a range of fresh ones.
//
// Each 2 MiB of addresses go to 16 of the shards: the driver and most allocators cut that much into
// small pieces for the threads that ask at the time. Threads with memory of their own seldom use
// the same shard, so its cache lines stay with them. Threads that share memory seldom wait for one
// another.
//
// All changes of one key are made under its shard's lock; a row's `state` tells readers without
// locks. A removed row keeps its contents until it is recycled, so that it can be put back.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/hash.hpp"
#include "runtime_hooks/core/mapping.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"
#include "runtime_hooks/ledger/write/allocation_records/record_fields.hpp"

namespace cuwarden::ledger {

class RecordIndex {
 public:
  explicit RecordIndex(Storage& storage) noexcept : storage_(storage) {}

  // Returns the row, live or not. `id` must be a row that the index handed out.
  Record& row(RecordId id) const noexcept {
    return storage_.rows<Record>(RegionId::records)[id.value];
  }

  // The result of insert().
  struct Inserted {
    RecordId id;  // row of the new record; 0: there is no room
    // record that had the key; it was removed, and the caller must recycle() it; 0: none
    RecordId replaced;
  };
  // Removes the live record of this key, copies its fields, and recycles its row. Returns false if
  // there is no such record.
  bool take(Space, DeviceAddress, RecordFields&) noexcept;
  // Adds a live record under this key. A record that has the key already is removed.
  Inserted insert(Space, DeviceAddress, const RecordFields&) noexcept;
  // Results of putting a record back that was taken: done; the driver has given its address to
  // another allocation meanwhile; there is no room.
  enum class Restored { yes, address_in_use, no_room };
  Restored restore(Space, DeviceAddress, const RecordFields&) noexcept;

  // Removes the record in a row that was found without a lock. Returns false if the row has no live
  // record any more, or, if `owner` is not null, no record that its context owns.
  bool remove(RecordId, const ContextId* owner = nullptr) noexcept;
  // Undoes remove(). Returns false if the record's address is in use by now, or if there is no
  // room.
  bool restore(RecordId) noexcept;
  // Makes a removed row free for other records.
  void recycle(RecordId) noexcept;

  // Adds a reference to the live record of this key. Returns false if there is none that counts
  // references.
  bool add_reference(Space, DeviceAddress) noexcept;
  // Removes a reference if another one stays. Returns false if it is the last one, or if the record
  // does not count references.
  bool drop_reference(Space, DeviceAddress) noexcept;

  // Returns the row of the live record with this key; 0 if there is none.
  RecordId find(Space, DeviceAddress) noexcept;
  // hide() removes the key from the index, while the record stays live, and returns its row (0:
  // none). show() inserts the record again, maybe with another address; false if there is no room.
  RecordId hide(Space, DeviceAddress) noexcept;
  bool show(RecordId, DeviceAddress) noexcept;
  // end_hidden() ends a live record that is not in the index. revive_hidden() undoes that.
  void end_hidden(RecordId) noexcept;
  void revive_hidden(RecordId) noexcept;

  static bool is_live(const Record& record) noexcept {
    return (record.state.load(std::memory_order_acquire) & 1) != 0;
  }

 private:
  static constexpr std::size_t shard_count = 256;
  static constexpr std::uint32_t no_slot = UINT32_MAX;

  struct alignas(64) Shard {
    FutexLock lock;
    std::uint32_t mask = 0;  // slots - 1
    std::uint32_t count = 0;
    std::uint32_t free_row = 0;  // list through Record::thread of rows that are not live
    std::uint32_t fresh = 0, fresh_end = 0;
    std::uint64_t* slots = nullptr;  // tag << 32 | row; 0 is empty
    Mapping memory;
  };

  static std::uint64_t hash_of(Space space, DeviceAddress address) noexcept;
  Shard& shard_of(DeviceAddress address, std::uint64_t hash) noexcept {
    return shards_[(address.value >> 21) * hash_salt[0] >> 60 << 4 | hash >> 60];
  }
  static_assert(shard_count == 1 << 8);
  std::uint32_t slot_of(const Shard&, std::uint64_t hash, Space, DeviceAddress) const noexcept;
  static bool make_room(Shard&) noexcept;
  static bool grow(Shard&) noexcept;
  static void put(Shard&, std::uint64_t hash, RecordId) noexcept;
  static RecordId cut(Shard&, std::uint32_t slot) noexcept;
  RecordId new_row(Shard&) noexcept;
  bool take_fresh_rows(Shard&) noexcept;
  RecordId put_new(Shard&, std::uint64_t hash, Space, DeviceAddress, const RecordFields&) noexcept;
  void give_back(Shard&, RecordId) noexcept;
  static void end(Record&) noexcept;
  static void publish(Record&) noexcept;

  Storage& storage_;
  Shard shards_[shard_count];
};

}  // namespace cuwarden::ledger
