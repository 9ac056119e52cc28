#include "reporters/text/text_report.hpp"

#include <algorithm>
#include <vector>

#include "reporters/text/elements/moments.hpp"
#include "reporters/text/elements/process_ending.hpp"
#include "reporters/text/elements/text_elements.hpp"
#include "reporters/text/headline/headline.hpp"
#include "reporters/text/text_accounts.hpp"
#include "reporters/text/text_fragmentation.hpp"
#include "reporters/text/text_frameworks.hpp"
#include "reporters/text/text_history.hpp"
#include "reporters/text/text_implicit.hpp"
#include "reporters/text/text_incidents.hpp"
#include "reporters/text/text_leaks.hpp"
#include "reporters/text/text_reserves.hpp"
#include "reporters/words/fitted.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"
#include "reporters/words/wall_clock.hpp"

namespace cuwarden {
namespace {

// Returns ", started 2026-11-26 14:03:11", in the time zone of this machine; empty if the time is
// unknown.
std::string started(const std::string& start) {
  const auto realtime_ns = parse_iso_8601(start);
  return realtime_ns ? ", started " + time_of_day(*realtime_ns, true) : "";
}

void add_header(const IndexedReport& report, const Style& style, std::string& text) {
  const auto& process = report->process;
  const std::string program = text_or(process.program, "unknown program");
  text += style.bold(std::string(file_name(program))) + " (pid " +
          std::to_string(process.pid.value_or(0)) + " on " +
          text_or(process.host, "an unknown host") + ") " +
          process_ending(process.end_reason, process.exit_status, process.signal) + " after " +
          human_time(process.end_ns.value_or(0)) + started(process.start) + "\n";
  std::string command;
  for (const std::string& word : process.command_line) command += " " + printable(word);
  if (!command.empty()) text += style.dim(" " + command) + "\n";

  std::vector<std::string> facts;
  for (const auto& device : report->devices) {
    facts.push_back("GPU " + std::to_string(device.device) + ": " +
                    text_or(device.name, "unknown") +
                    (device.used_bytes ? ", " + human_bytes(*device.used_bytes) + " of " +
                                             human_bytes(device.total_bytes.value_or(0)) + " in use"
                                       : ""));
  }
  const std::string driver = text_or(process.cuda_driver_version, "");
  if (!driver.empty()) facts.push_back("CUDA driver " + driver);
  const auto& job = report->job;
  std::string job_facts;
  if (job.job_id) {
    job_facts = text_or(job.scheduler, "") + " job " + text_or(job.job_id, "");
    const std::string array_task = text_or(job.array_task, "");
    const std::string step = text_or(job.job_step, "");
    if (!array_task.empty()) job_facts += ", array task " + array_task;
    if (!step.empty() && step != "0") job_facts += ", step " + step;  // most jobs have one step
    if (job.rank) job_facts += ", rank " + std::to_string(*job.rank);
  }
  if (const auto visible = visible_devices(report))
    job_facts += (job_facts.empty() ? "" : ", ") + *visible;
  if (!job_facts.empty()) facts.push_back(job_facts);
  for (const std::string& fact : facts) text += "  " + fact + "\n";
}

void add_reasons(const IndexedReport& report, const Style& style, std::string& text) {
  for (const auto* reasons : {&report->tool.reasons, &report->coverage.reasons}) {
    for (const std::string& reason : *reasons)
      text += style.yellow("  incomplete: ") + printable(reason) + "\n";
  }
}

std::string human_bytes_or_nothing(std::uint64_t bytes) {
  return bytes == 0 ? "nothing" : human_bytes(bytes);
}

// A row of the section MEMORY. Numbers stand apart from the words behind them, to stand flush
// right.
struct MemoryRow {
  std::string name;              // kind of memory and device
  std::string live, live_words;  // bytes that are live; such as " in 50"
  std::string peak, peak_words;  // bytes of the peak, may be empty; such as " in 50 after 1.2 s"
};

void add_totals_to(std::vector<MemoryRow>& rows, const IndexedReport& report) {
  for (const model::Total& total : report->totals) {
    const std::uint64_t live = total.live_count.value_or(0);
    MemoryRow row{.name = memory_name(total.kind, total.device),
                  .live = live == 0 ? "nothing" : human_bytes(total.live_bytes.value_or(0)),
                  .live_words = live == 0 ? "" : " in " + human_count(live),
                  .peak = human_bytes(total.peak_bytes.value_or(0)),
                  .peak_words = " in " + human_count(total.peak_count.value_or(0))};
    if (total.peak_time_ns)
      row.peak_words += " after " + short_moment(report, total.peak_time_ns.value_or(0));
    const std::uint64_t made = total.allocations.value_or(0);
    if (made > total.peak_count.value_or(0)) row.peak_words += ", " + human_count(made) + " made";
    rows.push_back(std::move(row));
  }
}

// Adds how much of the allocations above cuwarden's own pool and host memory serve.
void add_pool_to(std::vector<MemoryRow>& rows, const IndexedReport& report) {
  const auto& pool = report->pool;
  if (!pool) return;
  if (const std::uint64_t count = pool->spilled_count.value_or(0))
    rows.push_back({.name = "of that in host memory",
                    .live = human_bytes_or_nothing(pool->spilled_bytes.value_or(0)),
                    .live_words = "",
                    .peak = human_bytes(pool->spilled_peak_bytes.value_or(0)),
                    .peak_words = ", behind " + allocations(count) + " (CUWARDEN_SPILL)"});
  if (const std::uint64_t count = pool->served_count.value_or(0))
    rows.push_back({.name = "held by the pool in all",
                    .live = human_bytes_or_nothing(pool->held_bytes.value_or(0)),
                    .live_words = "",
                    .peak = "",
                    .peak_words = allocations(count) + " served (CUWARDEN_POOL)"});
  if (const std::uint64_t pause_ns = pool->mesh_pause_ns.value_or(0)) {
    const std::uint64_t pages = pool->meshed_pages.value_or(0);
    rows.push_back({.name = "meshing",
                    .live = "",
                    .live_words = "",
                    .peak = "",
                    .peak_words = "gave back " +
                                  human_bytes_or_nothing(pool->mesh_recovered_bytes.value_or(0)) +
                                  ", " + human_count(pages) + (pages == 1 ? " page" : " pages") +
                                  " came to share memory, the program was paused for " +
                                  human_time(pause_ns)});
  }
}

// Adds the section MEMORY. Its columns are no wider than their longest text, so that rows fit into
// the lines of a file.
void add_totals(const IndexedReport& report, const Style& style, std::string& text) {
  if (report->totals.empty()) return;
  std::vector<MemoryRow> rows;
  add_totals_to(rows, report);
  add_pool_to(rows, report);

  const std::string live_title = was_running(report) ? "live at that moment" : "live at the end";
  std::size_t name_width = 0, number = 0, peak_number = 0, live_width = live_title.size();
  for (const MemoryRow& row : rows) {
    name_width = std::max(name_width, row.name.size());
    number = std::max(number, row.live.size());
    peak_number = std::max(peak_number, row.peak.size());
  }
  for (const MemoryRow& row : rows)
    live_width = std::max(live_width, number + row.live_words.size());
  constexpr std::size_t gap = 3;
  text += "\n" +
          style.bold(padded("MEMORY", 2 + name_width + gap) + padded(live_title, live_width + gap) +
                     "peak") +
          "\n";
  for (const MemoryRow& row : rows)
    text += "  " + padded(row.name, name_width + gap) +
            padded(padded(row.live, number, true) + row.live_words, live_width + gap) +
            (row.peak.empty() ? "" : padded(row.peak, peak_number, true)) + row.peak_words + "\n";
}

// Returns the number of failed requests for this memory that the report's incidents are about.
std::uint64_t told_by_incidents(const IndexedReport& report, const model::Total& total) {
  std::uint64_t count = 0;
  for (const auto& incident : report->incidents)
    if (incident.kind == total.kind && incident.device == total.device)
      count += incident.failed_count.value_or(0);
  return count;
}

// A failed request leaves nothing behind that a list of leaks would show.
void add_failures(const IndexedReport& report, const Style& style, std::string& text) {
  for (const auto& row : report->totals) {
    const std::uint64_t failures = row.failures.value_or(0);
    if (failures <= told_by_incidents(report, row)) continue;
    text += "\n" + style.red("FAILED") + ": " + human_count(failures) +
            (failures == 1 ? " request for " : " requests for ") +
            memory_name(row.kind, row.device) + ": the program saw " +
            (failures == 1 ? "it" : "them") + " fail\n";
  }
}

// Adds the sections about the memory of each kind and of each device.
void add_memory(const IndexedReport& report, const TextOptions& options, const Style& style,
                std::string& text) {
  add_totals(report, style, text);
  add_failures(report, style, text);
  add_accounts(report, style, text);
  add_fragmentation(report, options, style, text);
  add_worst_fragmentation(report, options, style, text);
  add_forecasts(report, style, text);
}

}  // namespace

std::string text_report(const IndexedReport& report, const TextOptions& options, Told told) {
  const Style style(options.colour, options.full_stacks);
  std::string text;
  // The lines are fitted into the columns at the end.
  constexpr std::size_t passes = passes_of_headline + passes_of_leaks + 1;
  RowProgress done(report->leak_groups.size(), passes, told);
  const Headline headline = headline_of(report, style, done);
  done.reach(passes_of_headline);
  add_headline(headline, style, text);
  text += "\n";
  add_header(report, style, text);
  add_reasons(report, style, text);
  add_incidents(report, headline.incident, options, style, text);
  // A request that failed is explained by the device's account; a leak by its call stack.
  if (headline.incident) add_memory(report, options, style, text);
  add_blocks(report, options, style, text);
  add_leaks(report, options, headline, style, text, done);
  done.reach(passes_of_headline + passes_of_leaks);
  if (!headline.incident) add_memory(report, options, style, text);
  add_frameworks(report, style, text);
  add_library_reserves(report, style, text);
  add_implicit(report, style, text);
  if (options.by == GroupBy::stack) add_peaks(report, style, text);
  add_host_memory(report, style, text);
  return fitted(
      text,
      {.columns = options.columns, .ascii = options.ascii, .whole_words = options.full_stacks});
}

}  // namespace cuwarden
