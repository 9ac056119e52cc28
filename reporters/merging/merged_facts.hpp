// Facts of the merged report that follow from its tables: the first refusal, idle devices, holders
// of full devices, and the processes that stand out by a leak.
#pragma once

#include <span>
#include <vector>

#include "reporters/model/merged_report.hpp"

namespace cuwarden {

// Sets MergedReport::first_refusal from the table `refusals`. A refusal whose time is malformed
// does not count.
void find_first_refusal(model::MergedReport&);

// Fills the table `idle_devices`. Only hosts whose processes all have the same
// CUDA_VISIBLE_DEVICES are judged, and only if that is a list of which each entry is understood.
void find_idle_devices(model::MergedReport&);

// Rows of the table `device_holders` for each device, by the device's id less 1.
using HoldersByDevice = std::vector<std::vector<const model::DeviceHolder*>>;
// Returns the holders of each device, in their order. The rows are those of the merged report,
// which must outlive them unchanged. Its ids must be valid.
HoldersByDevice holders_by_device(const model::MergedReport&);

// Sets DeviceHolder::process by the pid where it is null: the process with this pid on the refused
// process's host that started last before the device was full. Stays null if there is none.
void find_holders(model::MergedReport&);

// Sets the sums of the leak, and MergedLeak::processes and later fields, from its rows of the table
// `leaks_of_processes`, of which there is one for each process. A sum of figures of which one is
// unknown is null; and so are the least, median and most bytes if the bytes of a process are.
void sum_up(model::MergedLeak&, std::span<const model::LeakOfProcess>);

}  // namespace cuwarden
