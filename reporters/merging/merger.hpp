// Makes the merged report of many processes from their reports, one report at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reporters/comparison/leaks_by_fingerprint.hpp"
#include "reporters/merging/known_processes.hpp"
#include "reporters/merging/merged_stacks.hpp"
#include "reporters/model/indexed_report.hpp"
#include "reporters/model/merged_report.hpp"
#include "reporters/model/row_progress.hpp"
#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden {

// Collects the reports of many processes, one at a time, and makes the merged report of them. Its
// memory grows with the number of processes, devices and leaks, not with the size of the reports.
class Merger {
 public:
  // `module`: text; MergedProcess counts only leaks of modules whose path contains it. Empty: all
  // leaks count.
  explicit Merger(std::string module = "") : module_(std::move(module)) {}

  // True if a process with this identity was added.
  bool knows(const ProcessIdentity& process) const { return known_.find(process).has_value(); }
  // Adds the process of a report, even if knows() is true for it. `name`: path of the report's
  // file, which becomes MergedProcess::report. `told`: is called now and then with the number of
  // leaks that were added so far, and the number of all rows of the report that may be leaks.
  void add(
      const std::string& name, const IndexedReport&, Told told = [](std::size_t, std::size_t) {});
  // Adds the processes of a merged report for which counts(row) is true and knows() is false.
  // Returns the number of processes for which both are true: they were known already. The ids in
  // the merged report must be valid (parse_merged_report() checks them).
  std::size_t add(
      const model::MergedReport&,
      FunctionRef<bool(const model::MergedProcess&)> counts = [](const auto&) { return true; });
  // Adds a sentence to MergedReport::tool: a reason why processes may be missing.
  void add_reason(const std::string& reason) { reasons_.push_back(reason); }

  // Returns the merged report of all processes that were added. To be called once, at the end.
  model::MergedReport finish();

 private:
  // The earliest failed request for memory of a device, and the processes that held the device's
  // memory at that moment.
  struct Full {
    // Time of the earliest failed request for the device's memory, in ns since 1970; 0: none
    // failed.
    std::int64_t realtime_ns = 0;
    // Number (MergedProcess::id) of the process whose request failed at realtime_ns; 0: none
    // failed.
    model::Id process = 0;
    // Processes that held the device's memory at realtime_ns.
    std::vector<model::DeviceHolder> holders;
  };
  // A device, with the facts that the reports added so far give.
  struct Device {
    model::MergedDevice row;
    Full full;
  };
  // A leak, with the facts that the reports added so far give.
  struct Leak {
    model::MergedLeak row;
    std::vector<model::LeakOfProcess> processes;
  };

  // For each CUDA ordinal that a process uses, the id of the device (id_of()).
  using IdsByOrdinal = std::map<model::Id, model::Id>;

  // Returns the id that the device has until finish(): its position in devices_ plus 1. A new
  // device is added. `process`: number (MergedProcess::id) of a process that used the device. If
  // UUID and host are unknown, devices of different processes count as different ones.
  model::Id id_of(model::MergedDevice device, model::Id process);
  // Adds the devices of the report, and their use by the process that was added last. Returns the
  // ids of the devices by their CUDA ordinals in that process.
  IdsByOrdinal add_devices(const IndexedReport&);
  // Adds failed requests of the process that was added last: its first one, and its first one on
  // each device.
  void add_refusals(const IndexedReport&, const IdsByOrdinal&);
  // Sets `full` to a failed request, if `full` has none or a later one. `realtime_ns`: time of the
  // failure, in nanoseconds since 1970. `process`: number (MergedProcess::id) of the process whose
  // request failed. holders() returns the processes that held the device's memory then; it is
  // called only if the request is kept.
  template <class Holders>
  void keep_if_first(Full& full, std::int64_t realtime_ns, model::Id process, const Holders&);
  // Returns the processes that held memory of the incident's device when the request was refused:
  // first the process of the report, then the others, largest first.
  std::vector<model::DeviceHolder> holders_at(const IndexedReport&, const model::Incident&) const;
  // Returns the leak with the row's fingerprint. A new leak gets kind, function and stack of the
  // row.
  Leak& leak_of(const IndexedReport&, const LeakRow&);
  // Removes settings from settings_ that are not among the given ones. If settings_ is null, it
  // becomes the given ones. Not to be called for reports without settings.
  void keep_common(const std::vector<model::Setting>&);

  // Fills the merged report's tables of devices, of their uses and holders, and of refusals.
  // Devices are sorted by name, and get new ids.
  void give_devices(model::MergedReport&);
  // Fills the merged report's tables of leaks. Leaks are sorted by bytes, most first, and get new
  // ids.
  void give_leaks(model::MergedReport&);

  std::string module_;
  KnownProcesses known_;
  std::vector<std::string> reasons_;
  std::vector<model::MergedProcess> processes_;
  std::vector<model::Refusal> refusals_;
  std::vector<Device> devices_;
  // Ids of devices (id_of()), by device_name() and a process: the one that used the device if UUID
  // and host are both unknown; otherwise 0.
  std::map<std::pair<std::string, model::Id>, model::Id> device_ids_;
  std::vector<model::DeviceUse> uses_;
  std::map<std::string, Leak> leaks_;  // leaks of all reports added so far, by fingerprint
  std::set<std::string> suppressed_;   // fingerprints of suppressed leaks
  // Settings that all reports have in common; null: no report so far had settings.
  std::optional<std::vector<model::Setting>> settings_;
  MergedStacks stacks_;
};

}  // namespace cuwarden
