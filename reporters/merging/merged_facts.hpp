// Works out facts of the merged report from its other tables: the first refusal, idle devices,
// holders of full devices, and processes that hold much more of a leak than others.
#pragma once

#include <span>
#include <vector>

#include "reporters/model/merged_report.hpp"

namespace cuwarden {

// Sets MergedReport::first_refusal to the earliest row of the table `refusals`. Rows whose time is
// malformed do not count. Leaves it null if there is no other row. To be called once the tables
// `refusals` and `processes` are complete.
void find_first_refusal(model::MergedReport&);

// Fills the table `idle_devices`: hosts on which processes share a device while other visible
// devices have no process. A host is judged only if all of its processes have the same
// CUDA_VISIBLE_DEVICES, and only if each entry of that list is understood.
void find_idle_devices(model::MergedReport&);

// For each device of a merged report, its rows of the table `device_holders`. The index is the
// device's id less 1.
using HoldersByDevice = std::vector<std::vector<const model::DeviceHolder*>>;
// Returns the rows of the table `device_holders` of each device, in the order of the table. The
// result points into the merged report, which must outlive it unchanged. The ids in the report must
// be valid.
HoldersByDevice holders_by_device(const model::MergedReport&);

// Sets DeviceHolder::process where it is null, if the process can be found by its pid. It is a
// process with this pid on the host of the process whose request was refused. If there are several,
// it is the one that started last before the device was full.
void find_holders(model::MergedReport&);

// Sets the figures of a leak from its rows of the table `leaks_of_processes`, one row for each
// process. Sums up counts, bytes and named steps, and counts the processes. A sum is null if a
// figure in it is unknown. Finds the least, median and most bytes, and the process that stands out
// (MergedLeak::outlier). These stay null without rows, or if any row's bytes are unknown.
void sum_up(model::MergedLeak&, std::span<const model::LeakOfProcess>);

}  // namespace cuwarden
