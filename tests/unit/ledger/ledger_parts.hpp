// The tables of a ledger, made without a Writer. The test passes the times.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime_hooks/ledger/format/geometry.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"
#include "runtime_hooks/ledger/storage/thread_shards.hpp"
#include "runtime_hooks/ledger/write/allocation_records/group_table.hpp"
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"

namespace cuwarden::ledger {

// The tables of a ledger in memory, made without a Writer. The test passes the times.
class LedgerParts : public ::testing::Test {
 protected:
  LedgerParts() {
    EXPECT_TRUE(storage.create({{}, "", 0, 1, false}));
    EXPECT_TRUE(thread_shards.create(serial += 1000, static_cast<std::uint32_t>(getpid())));
    EXPECT_TRUE(totals.create());
    EXPECT_TRUE(groups.create());
    storage.header().process.pid = static_cast<std::uint32_t>(getpid());
    storage.header().checksum = header_checksum(storage.header());
    storage.header().published.store(1);
  }
  // Returns the group of allocations by the stack with the id `stack`, of this kind and on the
  // device with this ordinal; makes it if it is new.
  GroupId group(std::uint32_t stack, Kind kind = Kind::device, std::int32_t device = 0) {
    return groups.get({StackId{stack}, HookId{0}, kind, DeviceOrdinal{device}});
  }
  // Returns a reader of the ledger.
  Reader reader() {
    ReadError error;
    return Reader::open(storage.bytes(), error).value();
  }

  Storage storage;  // the ledger's memory
  // Number that distinguishes this ledger's file from files of other ledgers; larger for each test.
  static inline std::uint32_t serial = 0;
  ThreadShards thread_shards{storage};                // the counters that each thread keeps
  Totals totals{storage, thread_shards};              // the totals by kind of memory and device
  GroupTable groups{storage, thread_shards, totals};  // the allocations by call site
};

}  // namespace cuwarden::ledger
