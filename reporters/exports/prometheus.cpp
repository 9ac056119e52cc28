// Metrics in Prometheus's text format: sums of each report, for the textfile collector of
// node_exporter. No label has call stacks or other values without end.
#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "reporters/exports/exports.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/replace_all.hpp"
#include "reporters/words/wall_clock.hpp"

namespace cuwarden {
namespace {

// A metric, which has a value for each set of labels.
struct Metric {
  std::string_view name, type, help;
};
constexpr Metric metrics[] = {
    {"cuwarden_process_info", "gauge", "Processes that cuwarden has recorded; always 1."},
    {"cuwarden_process_start_time_seconds", "gauge",
     "Start of the process, in seconds since 1970."},
    {"cuwarden_process_running", "gauge",
     "1 if the process was running when its figures were read."},
    {"cuwarden_read_time_seconds", "gauge",
     "Moment that the figures are of, in seconds since 1970: the end of the process, or the "
     "snapshot's."},
    {"cuwarden_complete", "gauge", "1 if nothing is missing in the figures of the process."},
    {"cuwarden_device_info", "gauge", "Devices that the process used; always 1."},
    {"cuwarden_device_size_bytes", "gauge", "Size of the device."},
    {"cuwarden_device_used_bytes", "gauge",
     "Bytes of the device that all processes together used, at its last reading."},
    {"cuwarden_device_free_bytes", "gauge", "Free bytes of the device, at its last reading."},
    {"cuwarden_device_owner_bytes", "gauge",
     "Bytes of the device by owner, at its last reading. The owners add up to the used bytes."},
    {"cuwarden_live_bytes", "gauge", "Bytes that are allocated and not freed."},
    {"cuwarden_live_allocations", "gauge", "Allocations that are not freed."},
    {"cuwarden_peak_bytes", "gauge", "Most bytes that were live at one time."},
    {"cuwarden_allocations_total", "counter", "Allocations that were made."},
    {"cuwarden_frees_total", "counter", "Allocations that the program freed."},
    {"cuwarden_failures_total", "counter",
     "Requests that the program saw fail for lack of memory."},
    {"cuwarden_leaked_bytes", "gauge",
     "Bytes that were not freed when the process ended, without suppressed ones."},
    {"cuwarden_incidents_total", "counter",
     "Call stacks whose requests were refused for lack of memory, by cause and outcome."},
    {"cuwarden_refusals_total", "counter",
     "Requests that were refused for lack of memory, by cause and outcome of their incident."},
    {"cuwarden_rescued_requests_total", "counter",
     "Refused requests that cuwarden served after all."},
    {"cuwarden_rescued_bytes_total", "counter",
     "Bytes of refused requests that cuwarden served after all."},
    {"cuwarden_rung_attempts_total", "counter",
     "Attempts to serve the first refused request of each incident, by rung and outcome."},
    {"cuwarden_rung_seconds_total", "counter",
     "Time that these attempts took, for which the requests waited."},
    {"cuwarden_mesh_pause_seconds_total", "counter",
     "Time for which meshing held up the work of the GPU."},
    {"cuwarden_pool_held_bytes", "gauge", "Memory that cuwarden's own pool holds."},
    {"cuwarden_spilled_bytes", "gauge", "Bytes of host memory behind live device allocations."},
};

// Returns the index of a metric. A name that is not in the list does not compile.
consteval std::size_t metric(std::string_view name) {
  std::size_t index = 0;
  while (metrics[index].name != name) ++index;
  return index;
}

using Labels = std::vector<std::pair<const char*, std::string>>;

// Returns the text as the value of a label, with the escapes of the format. Line feeds are escaped,
// and other control characters are replaced by question marks.
std::string label_value(const std::string& text) {
  std::string value;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = printable(text.substr(begin, end - begin));
    replace_all(line, "\\", "\\\\");
    replace_all(line, "\"", "\\\"");
    value += (begin == 0 ? "" : "\\n") + line;
    begin = end + 1;
  }
  return value;
}

// Returns the labels, without those whose values are empty: "a=\"1\",b=\"2\"".
std::string label_text(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    if (value.empty()) continue;
    text += (text.empty() ? "" : ",") + std::string(name) + "=\"" + label_value(value) + "\"";
  }
  return text;
}

std::string seconds(std::uint64_t ns) {
  constexpr std::uint64_t second = 1'000'000'000;
  const std::string fraction = std::to_string(ns % second + second).substr(1);
  return std::to_string(ns / second) + "." + fraction;
}

// The values of one process.
struct ProcessValues {
  std::uint64_t read_ns = 0;  // moment of the report, in ns since 1970; 0: unknown
  std::array<std::string, std::size(metrics)> lines;  // lines of each metric
};

// Writes the values of a report into ProcessValues.
class ValuesOf {
 public:
  explicit ValuesOf(const model::Report& report) : report_(report) {
    const auto number = [](model::Figure figure) {
      return figure ? std::to_string(*figure) : std::string();
    };
    identity_ =
        label_text({{"program", std::string(file_name(report.process.program.value_or("")))},
                    {"pid", number(report.process.pid)},
                    {"host", report.process.host.value_or("")},
                    {"rank", number(report.job.rank)},
                    {"job_id", report.job.job_id.value_or("")}});
    add_process();
    add_devices();
    add_totals();
    add_incidents();
    if (report.pool) add_pool(*report.pool);
  }

  // Returns the labels that all values of the process have, and that tell it from others.
  const std::string& identity() const { return identity_; }
  ProcessValues take() { return std::move(values_); }

 private:
  void add(std::size_t index, const std::string& value, const Labels& labels = {}) {
    std::string text = identity_;
    if (const std::string more = label_text(labels); !more.empty())
      text += (text.empty() ? "" : ",") + more;
    std::string& lines = values_.lines[index];
    lines += metrics[index].name;
    lines += "{" + text + "} " + value + "\n";
  }
  // Adds the figure unless it is unknown.
  template <class Number>
  void add(std::size_t index, const std::optional<Number>& figure, const Labels& labels = {}) {
    if (figure) add(index, std::to_string(*figure), labels);
  }

  Labels labels_of_device(model::MaybeId device) const {
    if (!device) return {{"device", "host"}};
    const auto row = std::ranges::find(report_.devices, *device, &model::Device::device);
    const bool is_known = row != report_.devices.end();
    return {{"device", std::to_string(*device)},
            {"uuid", is_known ? row->uuid.value_or("") : std::string()}};
  }

  void add_process() {
    const model::Process& process = report_.process;
    const bool is_running = process.end_reason == "running";
    add(metric("cuwarden_process_info"), "1",
        {{"scheduler", report_.job.scheduler.value_or("")},
         {"cuda_driver", process.cuda_driver_version.value_or("")},
         {"end", process.end_reason.value_or("")}});
    add(metric("cuwarden_process_running"), is_running ? "1" : "0");
    add(metric("cuwarden_complete"), report_.tool.complete ? "1" : "0");
    if (const auto start = parse_iso_8601(process.start)) {
      const auto start_ns = static_cast<std::uint64_t>(*start);
      values_.read_ns = start_ns + process.end_ns.value_or(0);
      add(metric("cuwarden_process_start_time_seconds"), seconds(start_ns));
      add(metric("cuwarden_read_time_seconds"), seconds(values_.read_ns));
    }
    // All memory of a running process is in use, as far as can be known.
    if (!is_running) add(metric("cuwarden_leaked_bytes"), report_.leaks.bytes);
  }

  void add_devices() {
    for (const model::Device& device : report_.devices) {
      const Labels labels = labels_of_device(device.device);
      Labels with_name = labels;
      with_name.emplace_back("name", device.name.value_or(""));
      add(metric("cuwarden_device_info"), "1", with_name);
      add(metric("cuwarden_device_size_bytes"), device.total_bytes, labels);
      add(metric("cuwarden_device_used_bytes"), device.used_bytes, labels);
      add(metric("cuwarden_device_free_bytes"), device.free_bytes, labels);
    }
    for (const model::AccountItem& item : report_.accounts) {
      if (item.incident) continue;
      Labels labels = labels_of_device(item.device);
      labels.emplace_back("owner", item.item);
      add(metric("cuwarden_device_owner_bytes"), item.bytes, labels);
    }
  }

  void add_totals() {
    for (const model::Total& total : report_.totals) {
      Labels labels = labels_of_device(total.device);
      labels.emplace_back("kind", total.kind);
      add(metric("cuwarden_live_bytes"), total.live_bytes, labels);
      add(metric("cuwarden_live_allocations"), total.live_count, labels);
      add(metric("cuwarden_peak_bytes"), total.peak_bytes, labels);
      add(metric("cuwarden_allocations_total"), total.allocations, labels);
      add(metric("cuwarden_frees_total"), total.frees, labels);
      add(metric("cuwarden_failures_total"), total.failures, labels);
    }
  }

  void add_incidents() {
    // By verdict or rung, and by outcome: number of incidents or attempts, and of refusals or ns.
    using IncidentSums =
        std::map<std::pair<std::string, std::string>, std::array<std::uint64_t, 2>>;
    IncidentSums incidents, rungs;
    for (const model::Incident& incident : report_.incidents) {
      auto& sums = incidents[{incident.verdict, incident.outcome}];
      sums[0] += 1;
      sums[1] += 1 + incident.repeats.value_or(0);
    }
    for (const model::Rung& rung : report_.rungs) {
      auto& sums = rungs[{rung.rung, rung.outcome}];
      sums[0] += 1;
      sums[1] += rung.duration_ns.value_or(0);
    }
    for (const auto& [key, sums] : incidents) {
      const Labels labels = {{"verdict", key.first}, {"outcome", key.second}};
      add(metric("cuwarden_incidents_total"), std::to_string(sums[0]), labels);
      add(metric("cuwarden_refusals_total"), std::to_string(sums[1]), labels);
    }
    for (const auto& [key, sums] : rungs) {
      const Labels labels = {{"rung", key.first}, {"outcome", key.second}};
      add(metric("cuwarden_rung_attempts_total"), std::to_string(sums[0]), labels);
      add(metric("cuwarden_rung_seconds_total"), seconds(sums[1]), labels);
    }
  }

  void add_pool(const model::Pool& pool) {
    add(metric("cuwarden_rescued_requests_total"), pool.rescued_count);
    add(metric("cuwarden_rescued_bytes_total"), pool.rescued_bytes);
    add(metric("cuwarden_pool_held_bytes"), pool.held_bytes);
    add(metric("cuwarden_spilled_bytes"), pool.spilled_bytes);
    if (pool.mesh_pause_ns)
      add(metric("cuwarden_mesh_pause_seconds_total"), seconds(*pool.mesh_pause_ns));
  }

  const model::Report& report_;
  std::string identity_;
  ProcessValues values_;
};

class Metrics final : public CommonFile {
 public:
  // Two values with the same labels would make the whole file invalid. So of two reports with the
  // same labels, such as a snapshot and the report of the end of its process, the later one counts.
  void add(const IndexedReport& report, const std::string&, Told) override {
    ValuesOf values(*report);
    ProcessValues taken = values.take();
    const auto [found, is_new] = processes_.try_emplace(values.identity());
    if (is_new || taken.read_ns >= found->second.read_ns) found->second = std::move(taken);
  }

  void write(Output& output, Told) override {
    for (std::size_t i = 0; i < std::size(metrics); ++i) {
      if (std::ranges::all_of(processes_,
                              [i](const auto& row) { return row.second.lines[i].empty(); }))
        continue;
      const std::string name(metrics[i].name);
      output.write("# HELP " + name + " ");
      output.write(metrics[i].help);
      output.write("\n# TYPE " + name + " ");
      output.write(metrics[i].type);
      output.write("\n");
      for (const auto& [identity, values] : processes_) output.write(values.lines[i]);
    }
  }

 private:
  std::map<std::string, ProcessValues> processes_;  // by the labels of the process
};

}  // namespace

std::unique_ptr<CommonFile> exports::prometheus() { return std::make_unique<Metrics>(); }

}  // namespace cuwarden
