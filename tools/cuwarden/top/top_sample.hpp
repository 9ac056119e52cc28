// The numbers that `cuwarden top` reads from a process's ledger at one moment (a sample).
#pragma once

#include <cstdint>
#include <vector>

#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// A group at the moment of a sample: all allocations with one call stack, function, kind of memory
// and device.
struct GroupSample {
  std::uint32_t id = 0;                          // the group's row in the ledger, from 1
  std::uint64_t live_bytes = 0, live_count = 0;  // bytes and number of live allocations
  std::uint64_t allocations = 0;                 // number of allocations since the process's start
  Kind kind{};                                   // kind of memory of the group
  DeviceOrdinal device = no_device;  // CUDA ordinal in the process; no_device for host memory
};

// The numbers that were read from a process's ledger at one moment.
struct Sample {
  std::uint64_t time_ns = 0;  // moment of the sample: CLOCK_MONOTONIC, in nanoseconds
  // All groups of the ledger (allocations with one call stack, function, kind of memory and
  // device), also those without live memory.
  std::vector<GroupSample> groups;
  // Totals of each kind of memory on each device, for kinds that the program asks CUDA for
  // (is_asked_for()). The sums below, but for `rescues`, are over these kinds.
  std::vector<ledger::SeriesView> series;
  // Live bytes of the process in all kinds of `series` but page-locked and registered host memory.
  std::uint64_t device_bytes = 0;
  std::uint64_t host_bytes = 0;   // live bytes of page-locked and registered host memory
  std::uint64_t live_count = 0;   // number of live allocations
  std::uint64_t allocations = 0;  // number of allocations since the process's start
  std::uint64_t failures = 0;     // number of refused requests since the process's start
  // Sum of the highest live bytes of each kind of memory on each device (`series`).
  std::uint64_t peak_bytes = 0;
  // Number of requests since the process's start that the driver refused and cuwarden served.
  std::uint64_t rescues = 0;
};

// Reads the present numbers of a process from its ledger. `Reader`: reads that ledger.
Sample take_sample(const ledger::Reader&);

}  // namespace cuwarden
