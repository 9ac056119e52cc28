// The contents of an allocation record as values, with which records are added to the ledger or
// taken from it.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::ledger {

// The fields of an allocation record (struct Record), without its key (space and address), its
// `state` and its `mappings`.
struct RecordFields {
  GroupId group;              // group that counts the allocation; 0: none
  ByteCount bytes;            // size as the program requested it; 0: unknown
  std::uint64_t time_ns = 0;  // time of the allocation in nanoseconds since process start
  ContextId context;          // context that the memory belongs to; 0: none
  // For a mapping or a second handle of virtual memory: row of the record that counts the memory's
  // bytes; 0: unknown. Always 0 for other memory.
  std::uint64_t related = 0;
  ThreadId thread;  // thread that allocated; 0: unknown
  // Number of openings of an IPC handle, or of references to a virtual memory handle, that keep the
  // allocation live. 0: the record counts no references; its first free ends it.
  std::uint32_t references = 0;
  // Bits of RecordFlag. If Allocations::take() has filled the fields: also a Reach in the bits
  // above them (record_reach_shift).
  std::uint8_t flags = 0;
  // Number of the measurement that gave the allocation its size, if its memory was measured
  // together with that of other objects. Readings of the device then showed how much memory several
  // objects had taken, and each got an equal part. If several measurements added to the size, this
  // is the latest one. 0: there was none, or it was measured after the 65,535 that have numbers.
  std::uint16_t difference = 0;
};

// A change of an allocation record's flags and of its `difference`, made when more becomes known
// about the size of the allocation.
struct CertaintyChange {
  // Bits of Record::flags to be set and to be cleared in the record. Bits in both end up cleared.
  std::uint8_t set = 0, clear = 0;
  // New value of the record's `difference`: number of the measurement, from 1, that has changed the
  // allocation's size. 0: the record's `difference` stays.
  std::uint16_t difference = 0;
};

// An allocation record to be added to the ledger: its key and its fields. The ledger sets `thread`
// to the calling thread, and `time_ns` to the present time if it is 0.
struct NewRecord : RecordFields {
  Space space{};          // kind of number that `address` is, such as a pointer or a handle
  DeviceAddress address;  // address or handle; with `space`, the record's key
};

// An allocation record that Allocations::take() has ended before the driver's free. Converts to
// false if the address had no record. If the driver refuses the free, Allocations::put_back() makes
// the record live again.
struct TakenRecord {
  Space space{};          // kind of number that `address` is, such as a pointer or a handle
  DeviceAddress address;  // address or handle; with `space`, the record's key
  RecordFields fields;    // the record's other fields; group 0: the address had no record
  // Time at which Allocations::take() ended the record, in ns since process start.
  std::uint64_t taken_ns = 0;
  // True if Allocations::take() has found a record of the address.
  explicit operator bool() const { return fields.group.value != 0; }
};

}  // namespace cuwarden::ledger
