// All that the live view of `cuwarden top` knows at one moment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reporters/model/memory.hpp"
#include "tools/cuwarden/top/live/trend.hpp"
#include "tools/cuwarden/top/top_names.hpp"
#include "tools/cuwarden/top/top_rows.hpp"

namespace cuwarden {

// The totals of one kind of memory on one device.
struct LiveTotal {
  TotalRow row;
  Trend trend;  // live bytes of the last minutes
};

// A process of the live view.
struct LiveProcess {
  ProcessRow row;
  std::vector<DeviceRow> devices;
  std::vector<LiveTotal> totals;
  std::vector<WaitingRow> waiting;  // requests of the process that wait for memory
  Trend trend;                      // live bytes of all kinds and devices of the last minutes
};

// The allocations of one call stack, or of several that are folded together.
struct LiveStack {
  // Row of the stack's group in the ledger; 0: several groups.
  std::uint32_t group = 0;
  StackRow row;              // figures; `kind` is empty and `api` null if stacks differ in it
  std::string location{};    // user's line of code, as in reports: "a.cpp:7 in f"; empty: unknown
  std::string module{};      // file name of its library or program; empty: unknown
  std::uint64_t stacks = 1;  // number of stacks that are folded together
};

// All that the live view of `cuwarden top` knows at one moment. Texts are printable.
struct LiveData {
  std::vector<LiveProcess> processes;
  // The process that is open: its call stacks, and the parts of its devices' used memory.
  std::vector<LiveStack> stacks{};
  std::vector<model::AccountItem> accounts{};
  // The call stack that is open; null: it is still being looked up.
  std::optional<StackLines> whole_stack{};
};

}  // namespace cuwarden
