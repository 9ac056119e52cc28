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
#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden {

// Collects processes. The memory that it needs follows the number of processes, devices and leaks,
// not the size of the reports.
class Merger {
 public:
  // `module`: if not empty, the leaks that MergedProcess counts are those of modules whose path
  // contains this text.
  explicit Merger(std::string module = "") : module_(std::move(module)) {}

  // True if a process with this identity was added.
  bool knows(const ProcessIdentity& process) const { return known_.find(process).has_value(); }
  // Adds the process of a report, also if it is known. `name`: path of the report's file, for
  // MergedProcess::report.
  void add(const std::string& name, const IndexedReport&);
  // Adds the processes of a merged report for which counts(row) is true, except for known ones. Its
  // ids must be valid (parse_merged_report() checks them). Returns the number of processes for
  // which counts(row) is true, but which were known.
  std::size_t add(
      const model::MergedReport&,
      FunctionRef<bool(const model::MergedProcess&)> counts = [](const auto&) { return true; });
  // Notes a reason why processes may be missing, for MergedReport::tool.
  void add_reason(const std::string& reason) { reasons_.push_back(reason); }

  // Returns the merged report of all processes. To be called once, at the end.
  model::MergedReport finish();

 private:
  // The earliest request for memory of a device that failed, and the processes that held the device
  // then.
  struct Full {
    std::int64_t realtime_ns = 0;  // nanoseconds since 1970; 0: no request failed
    model::Id process = 0;         // process whose request failed
    std::vector<model::DeviceHolder> holders;
  };
  // A device, as it is known so far.
  struct Device {
    model::MergedDevice row;
    Full full;
  };
  // A leak, as it is known so far.
  struct Leak {
    model::MergedLeak row;
    std::vector<model::LeakOfProcess> processes;
  };

  // Ids of devices by their CUDA ordinals in a process.
  using IdsByOrdinal = std::map<model::Id, model::Id>;

  // Returns the id of the device until finish(), its position in devices_ plus 1. A new device is
  // added. `process`: a process that used the device. Without UUID and host, devices of different
  // processes are different ones.
  model::Id id_of(model::MergedDevice device, model::Id process);
  // Adds the use of the report's devices by the process that was added last.
  IdsByOrdinal add_devices(const IndexedReport&);
  // Adds the first failed requests of the process that was added last: the first of all, and the
  // first on each device.
  void add_refusals(const IndexedReport&, const IdsByOrdinal&);
  // Keeps the request as the first that failed on a device, if it is earlier than the one that is
  // known. Calls holders() if it is.
  template <class Holders>
  void keep_if_first(Full& full, std::int64_t realtime_ns, model::Id process, const Holders&);
  // Returns the processes that held the device of the incident, that of the report first.
  std::vector<model::DeviceHolder> holders_at(const IndexedReport&, const model::Incident&) const;
  // Returns the leak with this fingerprint; a new one gets kind, function and stack of the row.
  Leak& leak_of(const IndexedReport&, const LeakRow&);
  // Leaves out settings that the other reports do not have. Reports without settings count not.
  void keep_common(const std::vector<model::Setting>&);

  // Fills the tables of devices, their uses and holders, and of refusals. Devices are sorted by
  // name, and get new ids.
  void give_devices(model::MergedReport&);
  // Fills the tables of leaks. Leaks are sorted by bytes, the most first, and get new ids.
  void give_leaks(model::MergedReport&);

  std::string module_;
  KnownProcesses known_;
  std::vector<std::string> reasons_;
  std::vector<model::MergedProcess> processes_;
  std::vector<model::Refusal> refusals_;
  std::vector<Device> devices_;
  // Ids of devices by device_name() and, without UUID and host, by their process, otherwise 0.
  std::map<std::pair<std::string, model::Id>, model::Id> device_ids_;
  std::vector<model::DeviceUse> uses_;
  std::map<std::string, Leak> leaks_;                    // by fingerprint
  std::set<std::string> suppressed_;                     // fingerprints of suppressed leaks
  std::optional<std::vector<model::Setting>> settings_;  // null: no report has listed any
  MergedStacks stacks_;
};

}  // namespace cuwarden
