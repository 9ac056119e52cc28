// Summary of several reports: a line for each process, and a line for each device.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "reporters/model/indexed_report.hpp"
#include "reporters/text/leak_check.hpp"
#include "reporters/text/text_elements.hpp"
#include "reporters/words/printable.hpp"

namespace cuwarden {

// Returns a text about the end of the process, such as "exited with status 0" or "killed by signal
// 9 (SIGKILL)".
std::string process_ending(const model::Process&);

// Returns a line about the report's process, without a line feed, such as "app (pid 4711 on node7,
// rank 3) exited with status 0: 8.0 MiB in 8 allocations leaked". LeakCheck: the leaks of the
// report, as counted by check_leaks().
std::string process_line(const IndexedReport&, const LeakCheck&, const Style&);

// Sums up the use of each device by the processes of several reports. Devices are told apart by
// UUID; if that is unknown, by host and ordinal.
class DeviceSummary {
 public:
  // Adds the use of all devices by the process of a report.
  void add(const IndexedReport&);
  // Returns a line for each device, each with a line feed; empty if the reports have no devices.
  std::string lines() const;

 private:
  // The use of one device by the processes of all added reports.
  struct Device {
    // Name of the device's model; host of the processes; "unknown" and "an unknown host" stand for
    // unknown ones.
    std::string name, host;
    std::uint64_t processes = 0;   // number of processes that used the device
    std::uint64_t live_bytes = 0;  // sum of these processes' live bytes at their ends
    // Sum of the peaks (most live bytes at a time) of each process and kind of memory.
    std::uint64_t peak_bytes = 0;
    std::uint64_t refused = 0;  // number of incidents, requests refused for lack of memory
  };
  // All devices, by UUID; by host and ordinal if the UUID is unknown.
  std::map<std::string, Device> devices_;
};

}  // namespace cuwarden
