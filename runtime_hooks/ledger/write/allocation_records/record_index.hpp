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

  Record& row(RecordId id) const noexcept {
    return storage_.rows<Record>(RegionId::records)[id.value];
  }

  struct Inserted {
    RecordId id;        // 0: no room
    RecordId replaced;  // was found under this key; removed, to be recycled by the caller
  };
  // A live record's fields; its row is given away for good. False: there is none.
  bool take(Space, DeviceAddress, RecordFields&) noexcept;
  // A new live record under this key.
  Inserted insert(Space, DeviceAddress, const RecordFields&) noexcept;
  // Results of putting a record back that was taken: done; the driver has given its address to
  // another allocation meanwhile; there is no room.
  enum class Restored { yes, address_in_use, no_room };
  Restored restore(Space, DeviceAddress, const RecordFields&) noexcept;

  // Takes a row that was met without a lock out of the index and out of the live table: only if it
  // is still a live record's, and, where an owner is given, one that goes with this context.
  bool remove(RecordId, const ContextId* owner = nullptr) noexcept;
  // Brings such a row back. False: its address is in use, or there is no room in the index.
  bool restore(RecordId) noexcept;
  // Gives a removed row away for good.
  void recycle(RecordId) noexcept;

  // One reference more for a live record that counts them. False: there is none such.
  bool add_reference(Space, DeviceAddress) noexcept;
  // One less, where another one stays. False: it is the last, or they are not counted.
  bool drop_reference(Space, DeviceAddress) noexcept;

  RecordId find(Space, DeviceAddress) noexcept;
  // Takes the key out of the index while the record stays live, and puts it in again, maybe
  // under another address.
  RecordId hide(Space, DeviceAddress) noexcept;
  bool show(RecordId, DeviceAddress) noexcept;
  // Ends a live record that is not in the index; starts it again.
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
