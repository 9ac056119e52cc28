// The contents of an allocation record as values: to be added to the ledger, or taken from it.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::ledger {

// The fields of an allocation record (struct Record), without its key (space and address) and its
// `state`.
struct RecordFields {
  GroupId group;              // group in which the allocation counts; 0: none
  ByteCount bytes;            // size as the program requested it; 0: unknown
  std::uint64_t time_ns = 0;  // time of the allocation in nanoseconds since process start
  ContextId context;          // context that the memory belongs to; 0: none
  // For a mapping or a second handle of virtual memory: row of the record that counts the memory's
  // bytes; 0: unknown. For all other memory: 0.
  std::uint64_t related = 0;
  ThreadId thread;  // thread that allocated; 0: unknown
  // Number of references that keep the allocation live: openings of an IPC handle, or references to
  // a virtual memory handle. 0: the record counts no references, and ends with the first free.
  std::uint32_t references = 0;
  std::uint8_t flags = 0;  // bits of RecordFlag
  // A difference is the device memory that several objects took together, as a reading of the
  // device showed. This is the number of the latest one of which the object has an equal part
  // (Record::difference). 0: none, or one after the 65,535 that are numbered.
  std::uint16_t difference = 0;
};

// A change of what is known about an allocation.
struct CertaintyChange {
  // Bits of Record::flags to be set and to be cleared in the record. Bits in both end up cleared.
  std::uint8_t set = 0, clear = 0;
  // Number of the difference (RecordFields::difference) of which the object gets a part; 0: the
  // record's number stays.
  std::uint16_t difference = 0;
};

// An allocation record to be added to the ledger: key and fields. `thread` need not be set; nor
// need `time_ns` for an allocation of this moment: if it is 0, the ledger sets the present time.
struct NewRecord : RecordFields {
  Space space{};          // kind of number that `address` is, such as a pointer or a handle
  DeviceAddress address;  // address or handle; with `space`, the record's key
};

// An allocation record that Allocations::take() has ended before the driver's free. Converts to
// false if the address had no record. If the driver refuses the free, Allocations::put_back() makes
// the record live again.
struct TakenRecord {
  Space space{};               // kind of number that `address` is, such as a pointer or a handle
  DeviceAddress address;       // address or handle; with `space`, the record's key
  RecordFields fields;         // the record's other fields; group 0: the address had no record
  std::uint64_t taken_ns = 0;  // time of take(), since process start
  // True if the address had a record.
  explicit operator bool() const { return fields.group.value != 0; }
};

}  // namespace cuwarden::ledger
