// The report of a ledger: all parts and tables of the model, made from the facts that a process
// recorded.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reporters/model/put.hpp"
#include "reporters/model/report.hpp"
#include "reporters/model/row_progress.hpp"
#include "reporters/tables/allocation_sites.hpp"
#include "reporters/tables/forecasts.hpp"
#include "reporters/tables/fragmentation_tables.hpp"
#include "reporters/tables/groups/call_frames.hpp"
#include "reporters/tables/groups/frameworks.hpp"
#include "reporters/tables/groups/implicit_groups.hpp"
#include "reporters/tables/groups/leak_groups.hpp"
#include "reporters/tables/groups/library_reserves.hpp"
#include "reporters/tables/groups/step_marks.hpp"
#include "reporters/tables/groups/suppressed_groups.hpp"
#include "reporters/tables/incident_fragmentation.hpp"
#include "reporters/tables/incident_tables.hpp"
#include "reporters/tables/ledger_damage.hpp"
#include "reporters/tables/memory_tables.hpp"
#include "reporters/tables/process_facts.hpp"
#include "reporters/tables/report_options.hpp"
#include "reporters/tables/worst_slabs.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Makes the report of a process from its ledger. The process may still run, or have ended, and the
// ledger may be damaged. The constructor reads the facts that several tables share, and looks up
// the names of functions. Rows of tables are made when give() hands them out, so that no table of
// many rows lies in memory as a whole. All functions may throw std::bad_alloc.
class LedgerReport {
 public:
  // Keeps a reference to `ledger`, which the caller keeps alive. The options, and the Naming object
  // to which they point, are used by the constructor only.
  LedgerReport(const ledger::Reader& ledger, const ReportOptions& options);
  // Forbids a temporary reader, which would not live as long as the report.
  LedgerReport(const ledger::Reader&&, const ReportOptions&) = delete;

  // Hands all parts of the report but `redacted` to `sink`, in the order of model::Report. To be
  // called once. The sink has two function templates: part<"name">(value) takes a part that is no
  // table of rows, and table<"name">(put_rows) takes a table. The sink calls put_rows(Put<Row>) to
  // get the table's rows. Row: element type of the field of this name in model::Report.
  template <class Sink>
  void give(Sink& sink);

  // Returns the whole report. To be called once, instead of give().
  model::Report whole();

  // Returns the number of leaked allocations that the report states.
  std::uint64_t leaks() const { return leaks_of(groups_).count.value_or(0); }
  // Returns about how many rows give() will hand out. Only the largest tables are counted: groups
  // of allocations, blocks of frameworks, stacks and frames.
  std::size_t expected_rows() const {
    return groups_.size() + implicit_groups_.size() + blocks_.size() + frames_.rows();
  }
  // True if the ledger is damaged; the report states this, too.
  bool ledger_is_damaged() const { return damage_.any(); }

 private:
  // Makes the report. `done`: counts the records of allocations that were read, in all passes.
  LedgerReport(const ledger::Reader&, const ReportOptions&, RowProgress done);

  // Sentences for the report, each a reason why something is missing.
  using Reasons = std::vector<std::string>;

  // Adds the call stacks of all tables to frames_, and looks up the names of their functions as the
  // options say.
  void name_frames(const ReportOptions&);
  // Returns the report's statement about the tool, with all reasons why the report is incomplete.
  model::Tool tool() const;

  const ledger::Reader& ledger_;       // ledger of the process; not owned
  const ledger::ProcessView process_;  // facts about the process, read from the ledger
  const std::uint64_t end_ns_;  // result of end_of(): end of the process, in ns since its start
  // Groups of allocations (stack, function, kind, device) that were not freed, or that the end of a
  // context released.
  std::vector<LeakGroup> groups_;
  // Objects such as contexts and streams, by call stack, with the memory that the driver took for
  // them (implicit memory).
  std::vector<LeakGroup> implicit_groups_;
  // Blocks that frameworks have handed out and not got back, by call stack.
  std::vector<LeakGroup> blocks_;
  // Groups of allocations that allocated most bytes over the run (most_allocating()).
  const std::vector<ledger::GroupView> sites_;
  // Totals of each kind of memory on each device (all_series()).
  std::vector<ledger::SeriesView> series_;
  // Slabs (2 MiB pages of small requests) of each device at the end of the process, and bytes lost
  // to rounding.
  const Fragmentations fragmentations_;
  const std::vector<IncidentCase> incidents_;  // requests that were refused for lack of memory
  // Sentences: devices of which it is unknown when most memory was locked in slabs, with the
  // reason.
  Reasons unknown_slabs_;
  // Slabs of each device, by CUDA ordinal, at the moment at which most memory was locked in them.
  const std::map<std::int32_t, WorstSlabs> worst_slabs_;
  const LedgerDamage damage_;   // damage that was found in the ledger
  const Reasons lost_;          // sentences: reasons why the ledger lacks allocations
  const Reasons tool_reasons_;  // sentences: failures of cuwarden other than missing allocations
  Reasons nameless_;            // sentences: reasons why functions and lines are missing
  const model::Process about_;  // description of the process
  CallFrames frames_;           // call stacks, frames and modules to which the tables refer
  // Rules by which the user excludes leaks.
  std::vector<model::Suppression> suppressions_;
};

template <class Sink>
void LedgerReport::give(Sink& sink) {
  sink.template part<"schema">(model::report_schema);
  sink.template part<"tool">(tool());
  sink.template part<"records">(model::completeness(lost_));
  // Says if names of functions and source lines are missing, and why. The `cuwarden` command can
  // then look them up later.
  sink.template part<"names">(model::completeness(nameless_));
  sink.template part<"process">(about_);
  sink.template part<"memory_cgroup">(memory_cgroup_of(process_));
  sink.template part<"job">(job_of(ledger_));
  sink.template table<"settings">([&](auto put) { put_settings(ledger_, put); });
  sink.template table<"environment">([&](auto put) { put_environment(ledger_, put); });
  sink.template part<"coverage">(model::completeness(coverage_reasons(ledger_)));
  sink.template table<"hooks">([&](auto put) { put_hooks(ledger_, put); });
  sink.template table<"unhooked_lookups">([&](auto put) { put_unhooked_lookups(ledger_, put); });
  sink.template table<"devices">([&](auto put) { put_devices(ledger_, series_, put); });
  sink.template table<"accounts">([&](auto put) {
    put_accounts(ledger_, series_, fragmentations_,
                 implicit_of_libraries(ledger_, implicit_groups_, frames_), incidents_, put);
  });
  sink.template table<"device_processes">(
      [&](auto put) { put_device_processes(ledger_, incidents_, put); });
  sink.template table<"totals">([&](auto put) { put_totals(series_, put); });
  sink.template part<"leaks">(leaks_of(groups_));
  sink.template part<"pointer_search">(pointer_search_of(process_));
  sink.template table<"leak_groups">(
      [&](auto put) { put_leak_groups(ledger_, groups_, frames_, put); });
  sink.template table<"suppressions">([&](auto put) {
    for (const model::Suppression& row : suppressions_) put(row);
  });
  sink.template table<"forecasts">(
      [&](auto put) { put_forecasts(ledger_, series_, groups_, blocks_, frames_, put); });
  sink.template table<"library_reserves">(
      [&](auto put) { put_library_reserves(ledger_, groups_, frames_, put); });
  sink.template table<"frameworks">(
      [&](auto put) { put_frameworks(ledger_, groups_, incidents_, frames_, put); });
  sink.template table<"framework_sites">(
      [&](auto put) { put_framework_sites(ledger_, blocks_, frames_, put); });
  sink.template table<"implicit_groups">(
      [&](auto put) { put_implicit_groups(ledger_, implicit_groups_, frames_, put); });
  sink.template table<"fragmentation">(
      [&](auto put) { put_fragmentation(ledger_, series_, fragmentations_, put); });
  sink.template table<"slab_classes">([&](auto put) { put_slab_classes(fragmentations_, put); });
  sink.template table<"slab_map">(
      [&](auto put) { put_slab_map(ledger_, fragmentations_, frames_, put); });
  sink.template table<"slab_holders">(
      [&](auto put) { put_slab_holders(ledger_, fragmentations_, frames_, put); });
  sink.template table<"worst_fragmentation">(
      [&](auto put) { put_worst_fragmentation(worst_slabs_, put); });
  sink.template table<"worst_slab_classes">([&](auto put) { put_slab_classes(worst_slabs_, put); });
  sink.template table<"worst_slab_map">([&](auto put) { put_worst_slab_map(worst_slabs_, put); });
  sink.template table<"worst_slab_holders">(
      [&](auto put) { put_worst_slab_holders(ledger_, worst_slabs_, frames_, put); });
  sink.template table<"incidents">(
      [&](auto put) { put_incidents(ledger_, incidents_, frames_, put); });
  sink.template table<"incident_facts">([&](auto put) { put_incident_facts(incidents_, put); });
  sink.template table<"rungs">([&](auto put) { put_rungs(ledger_, incidents_, put); });
  sink.template table<"rungs_left_out">(
      [&](auto put) { put_rungs_left_out(ledger_, incidents_, put); });
  sink.template table<"incident_holders">(
      [&](auto put) { put_incident_holders(ledger_, incidents_, frames_, put); });
  sink.template table<"incident_fragmentation">(
      [&](auto put) { put_incident_fragmentation(ledger_, incidents_, put); });
  sink.template table<"incident_slab_classes">(
      [&](auto put) { put_incident_slab_classes(ledger_, incidents_, put); });
  sink.template table<"incident_slab_map">(
      [&](auto put) { put_incident_slab_map(ledger_, incidents_, frames_, put); });
  sink.template part<"pool">(pool_of(ledger_));
  sink.template table<"timeline">([&](auto put) { put_timeline(ledger_, put); });
  sink.template table<"peak_holders">([&](auto put) { put_peak_holders(ledger_, frames_, put); });
  sink.template table<"allocation_sites">(
      [&](auto put) { put_allocation_sites(ledger_, sites_, frames_, put); });
  sink.template table<"steps">([&](auto put) { StepMarks(ledger_).put_steps(put); });
  // Modules without leaks are listed, too, so that a reader can tell them from modules that were
  // never loaded.
  frames_.add_other_modules();
  sink.template table<"stacks">([&](auto put) { frames_.put_stacks(put); });
  sink.template table<"frames">([&](auto put) { frames_.put_frames(put); });
  sink.template table<"modules">([&](auto put) { frames_.put_modules(put); });
  sink.template part<"overhead">(overhead_of(process_));
}

}  // namespace cuwarden
