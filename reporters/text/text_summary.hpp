// Many reports at a glance: a line a process, and a line a device.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "reporters/model/indexed_report.hpp"
#include "reporters/text/leak_check.hpp"
#include "reporters/text/text_elements.hpp"
#include "reporters/words/printable.hpp"

namespace cuwarden {

// Returns how the process ended, such as "exited with status 0" or "killed by signal 9 (SIGKILL)".
std::string process_ending(const model::Process&);

// Returns a line about the process, such as "app (pid 4711 on node7, rank 3) exited with status 0:
// 8.0 MiB leaked in 8 allocations"
std::string process_line(const IndexedReport&, const LeakCheck&, const Paint&);

// Sums up the use of each device by the processes of several reports. UUIDs tell devices apart.
class DeviceSummary {
 public:
  void add(const IndexedReport&);
  std::string lines() const;  // a line for each device; empty without devices

 private:
  struct Device {
    std::string name, host;
    std::uint64_t processes = 0, live_bytes = 0, peak_bytes = 0, refused = 0;
  };
  std::map<std::string, Device> devices_;
};

}  // namespace cuwarden
