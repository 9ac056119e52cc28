// Reports of the ranks of a job, for tests of merged reports.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "reporters/merging/merger.hpp"
#include "tests/unit/reporters/units.hpp"

namespace cuwarden::test {

// Returns the report of the rank `number` of a job, with a leak of `bytes` on a device of its host.
// `uuid`: that of the device. The rank's pid is 100 + `number`.
inline model::Report rank(std::uint64_t number, const std::string& host, const std::string& uuid,
                          std::uint64_t bytes) {
  model::Report report;
  report.process.program = "/opt/app";
  report.process.host = host;
  report.process.pid = 100 + number;
  report.process.start = "2026-11-26T04:28:16.000000000Z";
  report.process.end_reason = "exit";
  report.job.rank = number;
  report.job.visible_devices = "0,1,2,3";
  model::Device device;
  device.uuid = uuid;
  report.devices = {device};
  model::Total total;
  total.kind = "device";
  total.device = 0;
  total.live_bytes = bytes;
  total.peak_bytes = 2 * bytes;
  report.totals = {total};
  model::Frame frame;
  frame.id = 7;
  frame.module = 3;
  frame.function = "Cache::insert(Key)";
  frame.file = "/src/cache.cpp";
  frame.line = 41;
  report.frames = {frame};
  report.modules = {{3, "/opt/libcache.so", {}}};
  report.stacks = {{5, {7}, false}};
  model::LeakGroup leak;
  leak.fingerprint = "00000000000000ab";
  leak.stack = 5;
  leak.kind = "device";
  leak.api = "cudaMalloc";
  leak.count = 1;
  leak.bytes = bytes;
  leak.lost_count = 1;
  leak.lost_bytes = bytes;
  report.leak_groups = {leak};
  report.leaks = {bytes, 1, 0, 0};
  return report;
}

// Adds a refused request for 64 MiB to the report. `after_ns`: its time, in nanoseconds since the
// process's start. `outcome`: the incident's outcome as in reports.
inline void refuse(model::Report& report, std::uint64_t after_ns,
                   const std::string& outcome = "failed") {
  model::Incident incident;
  incident.id = static_cast<model::Id>(report.incidents.size() + 1);
  incident.time_ns = after_ns;
  incident.api = "cudaMalloc";
  incident.bytes = 64 * mib;
  incident.device = 0;
  incident.outcome = outcome;
  incident.verdict = "device_full_own";
  report.incidents.push_back(incident);
}

// Adds another process that held `bytes` of device 0 at the report's first incident. `bytes`: null
// if unknown.
inline void hold(model::Report& report, std::uint64_t pid, model::Figure bytes) {
  model::DeviceProcess other;
  other.incident = 1;
  other.device = 0;
  other.pid = pid;
  other.used_bytes = bytes;
  report.device_processes.push_back(other);
}

// Returns the merged report of these reports, whose files are named 0.json, 1.json and so on.
inline model::MergedReport merged(const std::vector<model::Report>& reports) {
  Merger merger;
  for (std::size_t i = 0; i < reports.size(); ++i)
    merger.add(std::to_string(i) + ".json", IndexedReport(reports[i]));
  return merger.finish();
}

}  // namespace cuwarden::test
