#include "reporters/json/write_report.hpp"

#include <memory>
#include <utility>

#include "reporters/json/json_stream.hpp"
#include "reporters/model/each_row.hpp"
#include "reporters/model/report.hpp"
#include "reporters/symbols/naming.hpp"
#include "reporters/tables/call_frames.hpp"
#include "reporters/tables/fragmentation_tables.hpp"
#include "reporters/tables/incident_fragmentation.hpp"
#include "reporters/tables/incident_tables.hpp"
#include "reporters/tables/leak_groups.hpp"
#include "reporters/tables/ledger_damage.hpp"
#include "reporters/tables/memory_tables.hpp"
#include "reporters/tables/process_facts.hpp"
#include "reporters/tables/worst_slabs.hpp"

namespace cuwarden {
namespace {

using ledger::RegionId;

// Writes parts of the report by their names in the model, one after the other.
class ReportWriter {
 public:
  explicit ReportWriter(Output& output) : json_(output) {}

  template <model::FieldName name>
  void part(const model::FieldType<model::Report, name>& value) {
    json_.value(name, value);
  }
  // `put_rows` is called with a Put for the table's rows.
  template <model::FieldName name, class PutRows>
  void table(const PutRows& put_rows) {
    using Row = typename model::FieldType<model::Report, name>::value_type;
    json_.begin_table(name);
    const auto write = [this](const Row& row) { json_.row(row); };
    put_rows(Put<Row>(write));
    json_.end_table();
  }
  void finish() { json_.finish(); }

 private:
  JsonStream json_;
};

}  // namespace

WrittenReport write_report_json(const ledger::Reader& reader, const ReportOptions& options,
                                Output& output) {
  const ledger::ProcessView process = reader.process();
  const std::uint64_t end_ns = end_of(process, options);

  const bool is_running = options.end_reason == ledger::EndReason::running;
  const auto sums = std::make_unique<ledger::GroupSums>();  // 90 KB, too large for a small stack
  const std::vector<LeakGroup> groups =
      is_running ? live_groups(reader, end_ns, *sums) : leak_groups(reader, end_ns, *sums);
  const std::vector<ledger::SeriesView> series = all_series(reader, *sums);
  const Fragmentations fragmentations = find_fragmentation(reader);
  const std::vector<IncidentCase> incidents = all_incidents(reader);
  CallFrames frames(reader);
  for (const LeakGroup& leak : groups) frames.add_stack(leak.group.stack);
  add_stacks(reader, incidents, frames);
  std::vector<std::string> unknown;
  const auto worst_slabs = find_worst_slabs(reader, fragmentations, unknown);
  add_stacks(reader, worst_slabs, frames);
  each_row(reader, RegionId::groups, &ledger::Reader::group, [&](const auto& group) {
    if (group.at_peak_count > 0) frames.add_stack(group.stack);
  });
  const LedgerDamage damage = find_damage(reader, options.at_rest);
  const std::vector<std::string> lost = record_reasons(process, damage, options);
  std::vector<std::string> reasons = tool_reasons(process, options);
  reasons.insert(reasons.begin(), lost.begin(), lost.end());
  reasons.insert(reasons.end(), unknown.begin(), unknown.end());
  SymbolBudget budget = options.symbol_time
                            ? SymbolBudget(*options.symbol_time, options.symbol_memory)
                            : SymbolBudget();
  std::vector<std::string> nameless;
  if (!options.symbolise) {
    // The line stays in the report if the attempt to write it again, with names, fails.
    nameless.emplace_back(
        "functions and lines are missing: the process died before the report with them was "
        "written, or there was too little memory, disk or permitted file size (ulimit -f) for it");
  }
  Naming naming(budget);
  Naming& used = options.naming != nullptr ? *options.naming : naming;
  frames.name_all(options.symbolise ? &used : nullptr, nameless);
  reasons.insert(reasons.end(), nameless.begin(), nameless.end());

  ReportWriter report(output);
  report.part<"schema">(model::report_schema);
  model::Completeness whole = model::completeness(reasons);
  report.part<"tool">({"cuwarden", CUWARDEN_VERSION, whole.complete, std::move(whole.reasons)});
  // Reasons why allocations are missing; they are among the tool's reasons, too.
  report.part<"records">(model::completeness(lost));
  // Reasons why names and lines are missing, which the command can complete.
  report.part<"names">(model::completeness(nameless));
  report.part<"process">(process_of(process, options, end_ns));
  report.part<"memory_cgroup">(memory_cgroup_of(process));
  report.part<"job">(job_of(reader));
  report.table<"settings">([&](auto put) { put_settings(reader, put); });
  report.table<"environment">([&](auto put) { put_environment(reader, put); });
  report.part<"coverage">(model::completeness(coverage_reasons(reader)));
  report.table<"hooks">([&](auto put) { put_hooks(reader, put); });
  report.table<"unhooked_lookups">([&](auto put) { put_unhooked_lookups(reader, put); });
  report.table<"devices">([&](auto put) { put_devices(reader, put); });
  report.table<"accounts">(
      [&](auto put) { put_accounts(reader, series, fragmentations, incidents, put); });
  report.table<"device_processes">([&](auto put) { put_device_processes(reader, incidents, put); });
  report.table<"totals">([&](auto put) { put_totals(series, put); });
  report.part<"leaks">(leaks_of(groups));
  report.table<"leak_groups">([&](auto put) { put_leak_groups(reader, groups, frames, put); });
  report.table<"fragmentation">(
      [&](auto put) { put_fragmentation(reader, series, fragmentations, put); });
  report.table<"slab_classes">([&](auto put) { put_slab_classes(fragmentations, put); });
  report.table<"slab_map">([&](auto put) { put_slab_map(fragmentations, put); });
  report.table<"slab_holders">(
      [&](auto put) { put_slab_holders(reader, fragmentations, frames, put); });
  report.table<"worst_fragmentation">([&](auto put) { put_worst_fragmentation(worst_slabs, put); });
  report.table<"worst_slab_classes">([&](auto put) { put_slab_classes(worst_slabs, put); });
  report.table<"worst_slab_map">([&](auto put) { put_worst_slab_map(worst_slabs, put); });
  report.table<"worst_slab_holders">(
      [&](auto put) { put_worst_slab_holders(reader, worst_slabs, frames, put); });
  report.table<"incidents">([&](auto put) { put_incidents(reader, incidents, frames, put); });
  report.table<"incident_facts">([&](auto put) { put_incident_facts(incidents, put); });
  report.table<"rungs">([&](auto put) { put_rungs(reader, incidents, put); });
  report.table<"incident_holders">(
      [&](auto put) { put_incident_holders(reader, incidents, frames, put); });
  report.table<"incident_fragmentation">(
      [&](auto put) { put_incident_fragmentation(reader, incidents, put); });
  report.table<"incident_slab_classes">(
      [&](auto put) { put_incident_slab_classes(reader, incidents, put); });
  report.table<"incident_slab_map">(
      [&](auto put) { put_incident_slab_map(reader, incidents, put); });
  report.part<"pool">(pool_of(reader));
  report.table<"timeline">([&](auto put) { put_timeline(reader, put); });
  report.table<"peak_holders">([&](auto put) { put_peak_holders(reader, frames, put); });
  // Modules without leaks are listed, too, so that a reader can tell them from modules that were
  // never loaded.
  frames.add_other_modules();
  report.table<"stacks">([&](auto put) { frames.put_stacks(put); });
  report.table<"frames">([&](auto put) { frames.put_frames(put); });
  report.table<"modules">([&](auto put) { frames.put_modules(put); });
  report.part<"overhead">(overhead_of(process));
  report.finish();
  return {.ledger_is_damaged = damage.any()};
}

}  // namespace cuwarden
