#include "reporters/exports/page/page_report.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "reporters/exports/page/page_json.hpp"
#include "reporters/exports/page/page_notices.hpp"
#include "reporters/exports/page/page_slabs.hpp"
#include "reporters/text/elements/text_elements.hpp"
#include "reporters/text/text_accounts.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/wall_clock.hpp"

namespace cuwarden {
namespace {

// Groups with a fingerprint in the page, largest first. Fingerprints are hashes, which cannot be
// compressed: those of a hundred thousand groups would take a third of the page.
constexpr std::size_t most_fingerprints = 2000;

model::Figure microseconds(model::Figure ns) { return ns ? model::Figure(*ns / 1000) : ns; }

std::string process_of(const IndexedReport& report, const std::string& path) {
  const model::Process& process = report->process;
  std::string command;
  for (const std::string& word : process.command_line)
    command += (command.empty() ? "" : " ") + word;
  PageJson row("{}");
  row.set("path", path)
      .set("program", text_or(process.program, "unknown program"))
      .set("pid", process.pid)
      .set("host", process.host)
      .set("command", command)
      .set("start", process.start)
      .set("end", microseconds(process.end_ns))
      .set("ending", words_about_end(report))
      .set("reason", process.end_reason)
      .set("steps", process.steps)
      .set("driver", process.cuda_driver_version)
      .set("package", process.driver_package_version)
      .set("runtime", process.cuda_runtime_version)
      .set("rank", report->job.rank)
      .set("job", report->job.job_id)
      .set("scheduler", report->job.scheduler)
      .set("visible", report->job.visible_devices)
      .set("redacted", report->redacted)
      .set("tool", report->tool.version);
  // Milliseconds since 1970, which a number of JavaScript holds exactly.
  const auto start = parse_iso_8601(process.start);
  row.set("epoch", start ? std::optional(*start / 1'000'000) : std::nullopt);
  if (const auto& cgroup = report->memory_cgroup)
    row.set("cgroup_limit", cgroup->limit_bytes)
        .set("cgroup_peak", cgroup->peak_bytes)
        .set("oom_kills", cgroup->oom_kills);
  if (report->overhead)
    row.set("recorded_calls", report->overhead->recorded_calls)
        .set("shim_us", microseconds(report->overhead->shim_ns));
  return row.text();
}

// Returns all reasons for which the report lacks something, each once.
std::string lacks_of(const IndexedReport& report) {
  std::vector<std::string> reasons;
  for (const auto* list : {&report->tool.reasons, &report->coverage.reasons})
    for (const std::string& reason : *list)
      if (std::ranges::find(reasons, reason) == reasons.end()) reasons.push_back(reason);
  if (report->pointer_search && !report->pointer_search->is_complete)
    reasons.push_back("The search for pointers is not complete: " +
                      report->pointer_search->reason.value_or("no reason is known"));
  return page_column(reasons, [](const std::string& reason) { return reason; });
}

std::string devices_of(const IndexedReport& report) {
  PageTable table(report->devices);
  table.add("device", [](const auto& row) { return row.device; });
  table.add("name", [](const auto& row) { return row.name; });
  table.add("uuid", [](const auto& row) { return row.uuid; });
  table.add("at", [](const auto& row) { return row.at; });
  table.add("time", [](const auto& row) { return microseconds(row.time_ns); });
  table.add("total", [](const auto& row) { return row.total_bytes; });
  table.add("used", [](const auto& row) { return row.used_bytes; });
  table.add("free", [](const auto& row) { return row.free_bytes; });
  return table.text();
}

std::string accounts_of(const IndexedReport& report) {
  PageTable table(report->accounts);
  table.add("device", [](const auto& row) { return row.device; });
  table.add("incident", [](const auto& row) { return row.incident; });
  table.add("item", [](const auto& row) { return row.item; });
  table.add("words", [](const auto& row) { return account_item_words(row.item); });
  table.add("bytes", [](const auto& row) { return row.bytes; });
  return table.text();
}

std::string totals_of(const IndexedReport& report) {
  PageTable table(report->totals);
  table.add("kind", [](const auto& row) { return row.kind; });
  table.add("device", [](const auto& row) { return row.device; });
  table.add("made", [](const auto& row) { return row.allocations; });
  table.add("made_bytes", [](const auto& row) { return row.allocated_bytes; });
  table.add("failures", [](const auto& row) { return row.failures; });
  table.add("count", [](const auto& row) { return row.live_count; });
  table.add("bytes", [](const auto& row) { return row.live_bytes; });
  table.add("peak_count", [](const auto& row) { return row.peak_count; });
  table.add("peak_bytes", [](const auto& row) { return row.peak_bytes; });
  table.add("peak_time", [](const auto& row) { return microseconds(row.peak_time_ns); });
  return table.text();
}

// Returns a series of the timeline for each kind of memory on each device.
std::string timeline_of(const IndexedReport& report) {
  std::map<std::tuple<model::MaybeId, std::string_view>, std::vector<const model::Bucket*>> series;
  for (const model::Bucket& row : report->timeline) series[{row.device, row.kind}].push_back(&row);
  PageJson list("[]");
  for (const auto& [key, rows] : series) {
    PageJson one("{}");
    one.set("kind", std::string(std::get<1>(key))).set("device", std::get<0>(key));
    one.add("time", page_column(rows, [](const auto* row) { return microseconds(row->time_ns); }));
    one.add("width",
            page_column(rows, [](const auto* row) { return microseconds(row->width_ns); }));
    one.add("most", page_column(rows, [](const auto* row) {
              return row->max_bytes ? row->max_bytes : row->last_bytes;
            }));
    one.add("last", page_column(rows, [](const auto* row) { return row->last_bytes; }));
    list.add(one.text());
  }
  return list.text();
}

std::string incidents_of(const IndexedReport& report, StacksOfReport& stacks) {
  PageTable table(report->incidents);
  table.add("id", [](const auto& row) { return row.id; });
  table.add("time", [](const auto& row) { return microseconds(row.time_ns); });
  table.add("api", [](const auto& row) { return row.api; });
  table.add("bytes", [](const auto& row) { return row.bytes; });
  table.add("device", [](const auto& row) { return row.device; });
  table.add("outcome", [](const auto& row) { return row.outcome; });
  table.add("verdict", [](const auto& row) { return row.verdict; });
  table.add("repeats", [](const auto& row) { return row.repeats; });
  table.add("stack", [&](const auto& row) { return stacks.number_of(row.stack); });
  return table.text();
}

std::string holders_of(const IndexedReport& report, StacksOfReport& stacks) {
  PageTable table(report->incident_holders);
  table.add("incident", [](const auto& row) { return row.incident; });
  table.add("stack", [&](const auto& row) { return stacks.number_of(row.stack); });
  table.add("kind", [](const auto& row) { return row.kind; });
  table.add("count", [](const auto& row) { return row.count; });
  table.add("bytes", [](const auto& row) { return row.bytes; });
  table.add("growth", [](const auto& row) { return row.growth_bytes_per_minute; });
  table.add("locked", [](const auto& row) { return row.slab_locked_bytes; });
  return table.text();
}

// A row of the page's table of memory that was not freed.
struct Group {
  const model::LeakGroup* row = nullptr;  // not owned
  bool has_fingerprint = false;
};

std::string groups_of(const IndexedReport& report, StacksOfReport& stacks, PageStacks& page,
                      RowDone done) {
  std::vector<Group> rows;
  for (const model::LeakGroup& row : report->leak_groups) rows.push_back({&row});
  std::ranges::stable_sort(rows, std::greater(),
                           [](const Group& group) { return group.row->bytes.value_or(0); });
  for (std::size_t i = 0; i < rows.size() && i < most_fingerprints; ++i)
    rows[i].has_fingerprint = true;
  PageJson table("{}");
  const auto add = [&](const char* name, const auto& value) {
    table.add(name, page_column(rows, [&](const Group& group) { return value(*group.row); }));
  };
  const auto milliseconds = [](model::Figure ns) {
    return ns ? model::Figure(*ns / 1'000'000) : ns;
  };
  using Row = model::LeakGroup;
  // The frames of the stacks take longer than all other columns.
  add("stack", [&](const Row& row) {
    done();
    return stacks.number_of(row.stack);
  });
  add("kind", [&](const Row& row) { return page.text(row.kind); });
  add("api", [&](const Row& row) { return page.text(row.api.value_or("")); });
  add("module", [&](const Row& row) { return page.text(report.module_name(row.module)); });
  add("device", [](const Row& row) { return row.device; });
  add("bytes", [](const Row& row) { return row.bytes; });
  add("count", [](const Row& row) { return row.count; });
  add("made", [](const Row& row) { return row.allocations; });
  add("first", [&](const Row& row) { return milliseconds(row.first_ns); });
  // Many groups have one allocation, whose time is both the first and the last.
  add("during", [&](const Row& row) {
    const model::Figure first = milliseconds(row.first_ns), last = milliseconds(row.last_ns);
    return first && last ? std::optional(*last - std::min(*first, *last)) : std::nullopt;
  });
  add("growth", [&](const Row& row) { return page.text(row.growth.value_or("")); });
  add("rate", [](const Row& row) { return row.growth_bytes_per_minute; });
  add("reachability", [&](const Row& row) { return page.text(row.reachability.value_or("")); });
  add("lost", [](const Row& row) { return row.lost_bytes; });
  // 1: suppressed; 2: released by the end of its context.
  add("set_aside", [](const Row& row) { return row.released_by ? 2u : row.suppressed ? 1u : 0u; });
  table.add("fingerprint", page_column(rows, [](const Group& group) {
              return group.has_fingerprint ? group.row->fingerprint : std::nullopt;
            }));
  return table.text();
}

std::string peaks_of(const IndexedReport& report, StacksOfReport& stacks, PageStacks& page) {
  PageTable table(report->peak_holders);
  table.add("stack", [&](const auto& row) { return stacks.number_of(row.stack); });
  table.add("kind", [&](const auto& row) { return page.text(row.kind); });
  table.add("device", [](const auto& row) { return row.device; });
  table.add("bytes", [](const auto& row) { return row.bytes; });
  table.add("count", [](const auto& row) { return row.count; });
  table.add("made", [](const auto& row) { return row.allocations; });
  return table.text();
}

std::string sites_of(const IndexedReport& report, StacksOfReport& stacks, PageStacks& page) {
  PageTable table(report->framework_sites);
  table.add("stack", [&](const auto& row) { return stacks.number_of(row.stack); });
  table.add("api", [&](const auto& row) { return page.text(row.framework); });
  table.add("device", [](const auto& row) { return row.device; });
  table.add("bytes", [](const auto& row) { return row.bytes; });
  table.add("count", [](const auto& row) { return row.count; });
  table.add("made", [](const auto& row) { return row.allocations; });
  table.add("growth", [&](const auto& row) { return page.text(row.growth.value_or("")); });
  return table.text();
}

std::string objects_of(const IndexedReport& report, StacksOfReport& stacks, PageStacks& page) {
  PageTable table(report->implicit_groups);
  table.add("stack", [&](const auto& row) { return stacks.number_of(row.stack); });
  table.add("kind", [&](const auto& row) { return page.text(row.item); });
  table.add("api", [&](const auto& row) { return page.text(row.api.value_or("")); });
  table.add("device", [](const auto& row) { return row.device; });
  table.add("bytes", [](const auto& row) { return row.bytes; });
  table.add("count", [](const auto& row) { return row.count; });
  return table.text();
}

// Returns the stacks that allocated most bytes over the run.
std::string allocated_of(const IndexedReport& report, StacksOfReport& stacks, PageStacks& page) {
  PageTable table(report->allocation_sites);
  table.add("stack", [&](const auto& row) { return stacks.number_of(row.stack); });
  table.add("kind", [&](const auto& row) { return page.text(row.kind); });
  table.add("api", [&](const auto& row) { return page.text(row.api.value_or("")); });
  table.add("device", [](const auto& row) { return row.device; });
  table.add("bytes", [](const auto& row) { return row.allocated_bytes; });
  table.add("count", [](const auto& row) { return row.allocations; });
  return table.text();
}

std::string steps_of(const IndexedReport& report, PageStacks& page) {
  PageTable table(report->steps);
  table.add("number", [](const auto& row) { return row.number; });
  table.add("time", [](const auto& row) { return microseconds(row.time_ns); });
  table.add("name", [&](const auto& row) { return page.text(row.name.value_or("")); });
  table.add("name_end", [](const auto& row) { return microseconds(row.name_end_ns); });
  return table.text();
}

std::string frameworks_of(const IndexedReport& report) {
  PageTable table(report->frameworks);
  table.add("framework", [](const auto& row) { return row.framework; });
  table.add("pool", [](const auto& row) { return row.pool; });
  table.add("device", [](const auto& row) { return row.device; });
  table.add("incident", [](const auto& row) { return row.incident; });
  table.add("time", [](const auto& row) { return microseconds(row.time_ns); });
  table.add("reserved", [](const auto& row) { return row.reserved_bytes; });
  table.add("allocated", [](const auto& row) { return row.allocated_bytes; });
  table.add("peak", [](const auto& row) { return row.peak_allocated_bytes; });
  table.add("holes", [](const auto& row) { return row.hole_bytes; });
  return table.text();
}

std::string settings_of(const IndexedReport& report) {
  PageJson list("[]");
  const auto add = [&](const std::string& name, const model::Text& value, const model::Text& from) {
    PageJson row("{}");
    list.add(row.set("name", name).set("value", value).set("source", from).text());
  };
  for (const model::Setting& row : report->settings) add(row.name, row.value, row.source);
  for (const model::Variable& row : report->environment)
    if (!row.name.starts_with("CUWARDEN_")) add(row.name, row.value, "environment");
  return list.text();
}

}  // namespace

std::string page_report(const IndexedReport& report, const std::string& path,
                        StacksOfReport& stacks, Told told) {
  // At least one row counts, so that the progress of a report without leaks has an end, too.
  RowProgress done(std::max<std::size_t>(report->leak_groups.size(), 1), passes_of_notices + 1,
                   told);
  // A table of the page, by its name there.
  struct Table {
    std::string_view name;
    std::function<std::string()> text;
  };
  PageStacks& page = stacks.page();
  constexpr std::string_view summary = "summary";
  const Table tables[] = {
      {"process", [&] { return process_of(report, path); }},
      {summary, [&] { return page_notices(report, stacks, done); }},
      {"lacks", [&] { return lacks_of(report); }},
      {"devices", [&] { return devices_of(report); }},
      {"accounts", [&] { return accounts_of(report); }},
      {"totals", [&] { return totals_of(report); }},
      {"timeline", [&] { return timeline_of(report); }},
      {"incidents", [&] { return incidents_of(report, stacks); }},
      {"holders", [&] { return holders_of(report, stacks); }},
      {"groups", [&] { return groups_of(report, stacks, page, done); }},
      {"peaks", [&] { return peaks_of(report, stacks, page); }},
      {"sites", [&] { return sites_of(report, stacks, page); }},
      {"objects", [&] { return objects_of(report, stacks, page); }},
      {"allocated", [&] { return allocated_of(report, stacks, page); }},
      {"steps", [&] { return steps_of(report, page); }},
      {"frameworks", [&] { return frameworks_of(report); }},
      {"slabs", [&] { return page_slabs(report, stacks); }},
      {"settings", [&] { return settings_of(report); }},
  };
  PageJson object("{}");
  for (const Table& table : tables) {
    object.add(table.name, table.text());
    // The tables before it are those of few rows.
    if (table.name == summary) done.reach(passes_of_notices);
  }
  done.reach(passes_of_notices + 1);
  return object.text();
}

}  // namespace cuwarden
