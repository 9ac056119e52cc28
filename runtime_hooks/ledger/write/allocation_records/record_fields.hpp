// The contents of an allocation record, on its way into the ledger and out of it.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::ledger {

// The fields of a record beside its key and its state.
struct RecordFields {
  GroupId group;
  ByteCount bytes;
  std::uint64_t time_ns = 0;  // time of the allocation, since process start
  ContextId context;
  std::uint64_t related = 0;
  ThreadId thread;
  std::uint32_t references =
      0;                   // 1: memory that was opened, and may be opened again at its address
  std::uint8_t flags = 0;  // RecordFlag
};

// A record to be added. The writer sets the thread, and the time if it is 0.
struct NewRecord : RecordFields {
  Space space{};
  DeviceAddress address;
};

// A record that was taken out before the driver's free was called; for put_back() if the driver
// refuses.
struct TakenRecord {
  Space space{};
  DeviceAddress address;
  RecordFields fields;  // group 0: the address was not recorded
  std::uint64_t taken_ns = 0;
  explicit operator bool() const { return fields.group.value != 0; }
};

}  // namespace cuwarden::ledger
