#include "reporters/tables/ledger_report.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <memory>
#include <utility>

#include "reporters/model/each_row.hpp"
#include "reporters/symbols/naming.hpp"

namespace cuwarden {
namespace {

// The records of allocations are passed over for slabs, for damage, and for groups.
constexpr std::size_t passes_of_records = 2 + passes_of_groups;

// Fills the fields of a model::Report.
class ReportFiller {
 public:
  template <model::FieldName name>
  void part(model::FieldType<model::Report, name> value) {
    model::field<name>(report) = std::move(value);
  }
  template <model::FieldName name, class PutRows>
  void table(const PutRows& put_rows) {
    using Row = typename model::FieldType<model::Report, name>::value_type;
    const auto add = [&rows = model::field<name>(report)](const Row& row) { rows.push_back(row); };
    put_rows(Put<Row>(add));
  }

  model::Report report;
};

// True if the process aborted, crashed, or ended with an exit status other than 0. False if another
// process may have sent the signal that ended it.
bool has_failed(const model::Process& process) {
  constexpr std::array<int, 4> sent_by_others{SIGHUP, SIGINT, SIGKILL, SIGTERM};
  if (process.signal) return std::ranges::count(sent_by_others, *process.signal) == 0;
  return process.exit_status.value_or(0) != 0;
}

}  // namespace

LedgerReport::LedgerReport(const ledger::Reader& ledger, const ReportOptions& options)
    : LedgerReport(ledger, options,
                   RowProgress(ledger.rows(ledger::RegionId::records), passes_of_records,
                               [&](std::size_t done, std::size_t all) {
                                 if (options.told)
                                   options.told("reading records of allocations", done, all);
                               })) {}

LedgerReport::LedgerReport(const ledger::Reader& ledger, const ReportOptions& options,
                           RowProgress done)
    : ledger_(ledger),
      process_(ledger.process()),
      end_ns_(end_of(process_, options)),
      sites_(most_allocating(ledger)),
      fragmentations_(find_fragmentation(ledger, done)),
      incidents_(all_incidents(ledger)),
      worst_slabs_(find_worst_slabs(ledger, fragmentations_, unknown_slabs_)),
      damage_(find_damage(ledger, options.at_rest, done)),
      lost_(record_reasons(process_, damage_, options)),
      tool_reasons_(tool_reasons(process_, options)),
      about_(process_of(process_, options, end_ns_)),
      frames_(ledger) {
  const auto sums = std::make_unique<ledger::GroupSums>();  // 150 KB, too large for a small stack
  const bool is_running = options.end_reason == ledger::EndReason::running;
  groups_ = is_running ? live_groups(ledger, end_ns_, *sums, done)
                       : leak_groups(ledger, {end_ns_, has_failed(about_)}, *sums, done);
  blocks_ = take_blocks(groups_);
  series_ = all_series(ledger, *sums);
  implicit_groups_ = implicit_groups(ledger, context_bytes(ledger), groups_);
  name_frames(options);
  suppressions_ = suppress_groups(ledger, frames_, groups_);
}

void LedgerReport::name_frames(const ReportOptions& options) {
  for (const auto* groups : {&groups_, &implicit_groups_, &blocks_})
    for (const LeakGroup& group : *groups) frames_.add_stack(group.group.stack);
  add_stacks_of_frameworks(ledger_, frames_);
  add_stacks(ledger_, incidents_, frames_);
  add_stacks(ledger_, fragmentations_, frames_);
  add_stacks(ledger_, worst_slabs_, frames_);
  each_row(ledger_, ledger::RegionId::groups, &ledger::Reader::group, [&](const auto& group) {
    if (group.at_peak_count > 0 && is_asked_for(group.kind)) frames_.add_stack(group.stack);
  });
  for (const ledger::GroupView& site : sites_) frames_.add_stack(site.stack);
  if (!options.symbolise) {
    // The line stays in the report if the attempt to write it again, with names, fails.
    nameless_.emplace_back(
        "functions and lines are missing: the process died before the report with them was "
        "written, or there was too little memory, disk or permitted file size (ulimit -f) for it");
    return frames_.name_all(nullptr, nameless_);
  }
  SymbolBudget budget = options.symbol_time
                            ? SymbolBudget(*options.symbol_time, options.symbol_memory)
                            : SymbolBudget();
  Naming naming(budget);
  frames_.name_all(options.naming != nullptr ? options.naming : &naming, nameless_,
                   [&](std::size_t done, std::size_t all) {
                     if (options.told)
                       options.told("finding names of functions in modules", done, all);
                   });
}

model::Tool LedgerReport::tool() const {
  Reasons reasons;
  for (const Reasons* some : {&lost_, &tool_reasons_, &unknown_slabs_, &nameless_})
    reasons.insert(reasons.end(), some->begin(), some->end());
  model::Completeness whole = model::completeness(std::move(reasons));
  return {"cuwarden", CUWARDEN_VERSION, whole.complete, std::move(whole.reasons)};
}

model::Report LedgerReport::whole() {
  ReportFiller filler;
  give(filler);
  return std::move(filler.report);
}

}  // namespace cuwarden
