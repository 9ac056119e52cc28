// One view over the processes of a job: the one that ran out of memory first, devices that several
// share while others are idle, and leaks that many processes have.
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
#include "reporters/model/indexed_report.hpp"
#include "reporters/text/text_elements.hpp"

namespace cuwarden {

// Sums up the reports of a job's processes.
class JobSummary {
 public:
  // `style`: the look of the texts.
  explicit JobSummary(const Style& style) : style_(style) {}

  // Adds a process of the job.
  void add(const IndexedReport&);

  // Returns lines about the process whose request failed for lack of memory first, by the clocks of
  // the hosts; empty if none failed. The lines also say how many processes failed later, and which
  // processes held the device at that moment.
  std::string first_refusal() const;
  // Returns a line for each host on which several processes shared a device while devices that were
  // visible to them had no process; empty if there is none. Only hosts whose processes all have the
  // same CUDA_VISIBLE_DEVICES, a list, are judged.
  std::string idle_devices() const;
  // Returns the leaks that several processes have, by fingerprint, the largest first: the least,
  // the median and the most bytes of a process, and the process that stands out. `top`: most leaks
  // that are shown; 0: all. Empty if no leak occurs in two processes.
  std::string common_leaks(std::size_t top) const;

 private:
  // A process of the job.
  struct Member {
    std::string name;  // "rank 3"; without a rank, "app (pid 4711)"
    std::string host;
    std::uint64_t pid = 0;
  };
  // A request that failed for lack of memory: the first of its process.
  struct Refusal {
    std::int64_t realtime_ns = 0;  // nanoseconds since 1970
    std::size_t member = 0;        // index in members_
    std::string line;              // the request and its verdict
    std::string device;            // device_name() of the device that was full; empty: host memory
    // Process ids and bytes of the other processes that held memory of the device.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> holders;
    std::uint64_t own_bytes = 0;  // bytes of the device that the process itself held
  };
  // A device on which processes of the job had memory.
  struct Device {
    std::string host;
    std::size_t processes = 0;
  };
  // The leaks with one fingerprint.
  struct Leak {
    std::string heading;  // kind and function
    std::string stack;    // call stack as lines of text
    // Bytes and index in members_ of each process.
    std::vector<std::pair<std::uint64_t, std::size_t>> bytes;
  };

  // Returns the name of the process, with its host if the job ran on several hosts.
  std::string name_of(std::size_t member) const;
  // Returns the process with this pid on the host: its name, or the pid.
  std::string name_of(const std::string& host, std::uint64_t pid) const;
  // Adds the first request of the process that failed.
  void add_refusal(const IndexedReport&);
  // Adds a leak of the process that was added last.
  void add_leak(const IndexedReport&, const LeakRow&);
  // Returns the bytes of a leak as text: "4.0 MiB each", or the least, the median and the most.
  std::string spread(const Leak&) const;

  Style style_;
  std::vector<Member> members_;
  std::set<std::string> hosts_;
  std::vector<Refusal> refusals_;          // one for each process with a failed request
  std::map<std::string, Device> devices_;  // by name: UUID, else number and host
  // Numbers of visible devices and values of CUDA_VISIBLE_DEVICES of the processes, by host.
  std::map<std::string, std::set<std::string>> visible_;
  std::map<std::string, Leak> leaks_;  // by fingerprint
};

}  // namespace cuwarden
