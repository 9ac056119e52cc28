// All that the live view of `cuwarden top` knows at one moment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reporters/model/memory.hpp"
#include "tools/cuwarden/top/live/trend.hpp"
#include "tools/cuwarden/top/top_json.hpp"
#include "tools/cuwarden/top/top_names.hpp"

namespace cuwarden {

// The totals of one kind of memory on one device.
struct LiveTotal {
  TotalRow row;  // present totals of the kind of memory on the device
  Trend trend;   // live bytes of the kind on the device over the last five minutes
};

// A process of the live view, with all that the view shows of it but its call stacks.
struct LiveProcess {
  ProcessRow row;                  // numbers of the whole process
  std::vector<DeviceRow> devices;  // devices that the process has used
  std::vector<LiveTotal> totals;   // totals of each kind of memory on each device
  // Refused requests of the process that cuwarden still tries to serve.
  std::vector<WaitingRow> waiting;
  // Live bytes of all kinds of memory on all devices over the last five minutes.
  Trend trend;
};

// A line of the list of call stacks: the allocations of one stack, or of several that are folded
// into one line.
struct LiveStack {
  // Row of the stack's group in the ledger; 0: the line folds the stacks of one text (fold_text()).
  std::uint32_t group = 0;
  // Figures of the line's allocations. If the line folds stacks of different kinds or devices,
  // `row.kind` is empty and `row.device` null. If it folds stacks of different CUDA functions,
  // `row.api` is null. `row.where` is null: `location` stands for it.
  StackRow row;
  // Line of the program's code in the words of reports, such as "a.cpp:7 in f"; empty: not looked
  // up yet. "no stack was recorded" if no such frame is known. Folded stacks have the text of their
  // shared column here (fold_text()).
  std::string location{};
  // File name of the library or the program with the code of `location`; empty: unknown, or folded
  // stacks differ in it.
  std::string module{};
  std::uint64_t stacks = 1;  // number of call stacks in the line; 1 or more
};

// All that the live view of `cuwarden top` knows at one moment. Texts about call sites are
// printable. Texts of rows need printable(): paths of programs, and names of users and devices.
struct LiveData {
  std::vector<LiveProcess> processes;  // all processes of the view, also ended ones
  // Call stacks of the process that the user has opened, one for each group; empty: no process is
  // open.
  std::vector<LiveStack> stacks{};
  // Parts of the used memory of the devices of the process that the user has opened; empty: no
  // process is open.
  std::vector<model::AccountItem> accounts{};
  // Frames of the call stack that the user has opened; empty: none were recorded. Null: no stack is
  // open, or it is still being looked up.
  std::optional<StackLines> whole_stack{};
};

}  // namespace cuwarden
