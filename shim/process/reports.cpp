#include "shim/process/reports.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <optional>

#include "reporters/model/each_row.hpp"
#include "reporters/reports/old_reports.hpp"
#include "reporters/reports/report_file.hpp"
#include "reporters/reports/report_policy.hpp"
#include "reporters/symbols/naming.hpp"
#include "reporters/symbols/symbol_budget.hpp"
#include "reporters/tables/ledger_report.hpp"
#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "shim/files/ledger_folder.hpp"
#include "shim/probes/host_limits.hpp"
#include "shim/support/log.hpp"
#include "shim/turns/writing_turn.hpp"

namespace cuwarden::shim {
namespace {

using ledger::RegionId;

// Longest search for names at an incident, for which the program waits. Functions without a name by
// then are shown as module and offset.
constexpr std::chrono::milliseconds symbol_time_at_incident{100};

struct Root {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const Root&) const = default;
};

Root root_folder() {
  struct stat status {};
  if (syscall(SYS_stat, "/", &status) != 0) return {};
  return {status.st_dev, status.st_ino};
}

// Returns the most bytes of memory that reading debug information may take. If a container has
// little memory left, a larger limit would get the process killed.
std::size_t most_symbol_memory(std::chrono::nanoseconds symbol_time) {
  // A user who allows more time wants files and lines.
  const std::uint64_t wanted = symbol_time > longest_symbol_time_at_exit
                                   ? most_symbol_memory_afterwards
                                   : most_symbol_memory_at_exit;
  return std::min(wanted, host_memory_left() / 4);
}

// Looks up the names for the last reports of a process.
struct Names {
  explicit Names(std::chrono::nanoseconds time) : budget(time, most_symbol_memory(time)) {}
  SymbolBudget budget;
  Naming naming{budget};
};

// The end of a process, and the number of calls in its ledger. Reports with equal contents need not
// be written twice.
struct Contents {
  ledger::EndReason end_reason;
  std::optional<int> exit_status;
  // Calls but those of cuGetProcAddress, which change nothing that a report is read for. The CUDA
  // runtime's destructor makes one in each process.
  std::uint64_t calls;
  std::uint64_t unhooked_lookups;
  bool operator==(const Contents&) const = default;
};

Contents contents_of(const ledger::Reader& reader) {
  const ledger::ProcessView process = reader.process();
  Contents contents{process.end_reason, process.exit_status, process.recorded_calls, 0};
  each_row(reader, RegionId::hooks, &ledger::Reader::hook, [&](const auto& hook) {
    if (hook.name.starts_with("cuGetProcAddress")) contents.calls -= hook.calls;
  });
  each_row(reader, RegionId::unhooked_lookups, &ledger::Reader::unhooked_lookup,
           [&](const auto& lookup) { contents.unhooked_lookups += lookup.count; });
  return contents;
}

// Made anew in place in a forked child.
struct Reports {
  Reports(const std::string& path, std::chrono::nanoseconds time)
      : file(path), symbol_time(time), root_at_start(root_folder()) {}
  ReportFile file;
  std::chrono::nanoseconds symbol_time;
  Root root_at_start;
  // Made for the first report that has names; later reports reuse the names. Used in `writing`.
  std::optional<Names> names;
  // Nanoseconds that write_report_at_exit() has taken. They do not count as time of the program.
  std::uint64_t taken_ns = 0;
  // Contents of the report with names that write_report_at_exit() wrote; null if it wrote none, or
  // if a report of an incident has replaced it. Used in `writing`.
  std::optional<Contents> written;
  std::atomic<bool> ended{false};          // true once the last report has been begun
  std::atomic<std::uint32_t> verdicts{0};  // verdicts for which a report was written: a bit each
};
alignas(Reports) constinit unsigned char storage[sizeof(Reports)]{};
constinit Reports* reports = nullptr;

// The turn of the thread that writes, because all reports are the same file.
constinit WritingTurn writing{system_clock};

// Holds the turn to write for the length of a scope. Converts to false if another thread has kept
// it for ten seconds. That wait does not count against the time for the end, since the other thread
// does work of the end.
class [[nodiscard]] MyTurn {
 public:
  MyTurn() : answer_(writing.take(longest_wait_ns)) {}
  ~MyTurn() {
    if (answer_ == WritingTurn::Answer::taken || answer_ == WritingTurn::Answer::taken_over)
      writing.give_back();
  }
  MyTurn(const MyTurn&) = delete;
  MyTurn& operator=(const MyTurn&) = delete;
  explicit operator bool() const { return answer_ != WritingTurn::Answer::not_given; }
  // True if the calling thread was interrupted while it wrote a report, by a signal handler.
  bool interrupts() const { return answer_ == WritingTurn::Answer::interrupted; }
  // True if `reports` may be half changed, by a thread that was interrupted or jumped away.
  bool finds_half_done() const {
    return interrupts() || answer_ == WritingTurn::Answer::taken_over;
  }

 private:
  static constexpr std::uint64_t longest_wait_ns = 10'000'000'000;
  const WritingTurn::Answer answer_;
};

std::optional<ledger::Reader> open_ledger(const ledger::Writer& ledger) {
  ledger::ReadError error;
  auto reader = ledger::Reader::open(ledger.file.bytes(), error);
  if (!reader) log_error(formatted("no report: the ledger cannot be read: {}", error.text));
  return reader;
}

// Writes the report. Returns true if it is on disk. The ledger gets its name, so that `run` or
// `recover` can replace it.
bool write_report(ledger::Writer& ledger, const ledger::Reader& reader,
                  const ReportOptions& options) {
  if (!reports->file.write(reader, options)) return false;
  ledger.file.header().report_number.store(reports->file.number() + 1, std::memory_order_relaxed);
  return true;
}

// Writes the report with the names of functions and lines.
bool write_named_report(ledger::Writer& ledger, const ledger::Reader& reader,
                        ReportOptions options) {
  if (reports->names)
    reports->names->budget.renew(reports->symbol_time);
  else
    reports->names.emplace(reports->symbol_time);
  options.naming = &reports->names->naming;
  return write_report(ledger, reader, options);
}

bool say_one_is_being_written(const ledger::Writer& ledger) {
  log_error("no last report: an earlier one is still being written" +
            where_the_records_stay(ledger.file.path()));
  return false;
}

}  // namespace

void set_up_reports(const std::string& path, std::chrono::nanoseconds symbol_time) {
  writing.reset();
  reports = new (storage) Reports(path, symbol_time);
}

std::string_view told_of_report() noexcept {
  return reports->file.path().empty() ? no_report_wanted : std::string_view(reports->file.path());
}

// Sets up another object for the reports, where a thread has left the present one half changed. The
// file that it wrote last is replaced. The present object is never freed, since the thread may use
// it again. Throws std::bad_alloc.
void leave_half_done(ledger::Writer& ledger, const ledger::Reader& reader) {
  const bool is_there = ledger.file.header().report_number.load(std::memory_order_relaxed) != 0;
  const std::string earlier = is_there ? reports->file.path() : std::string();
  const ledger::ProcessView process = reader.process();
  ReportFile::remove_unfinished(process);
  auto* const fresh = new Reports(std::string(process.report_path), reports->symbol_time);
  fresh->root_at_start = reports->root_at_start;
  fresh->taken_ns = reports->taken_ns;
  fresh->verdicts.store(reports->verdicts.load());
  if (is_there) fresh->file.adopt(earlier);
  reports = fresh;
}

std::string write_incident_report(ledger::Writer& ledger, const ledger::Reader& reader,
                                  std::uint32_t verdict) {
  if (reports->file.wanted() == path_of_no_report) return {};
  const std::uint32_t bit = 1u << verdict;
  const bool is_there = (reports->verdicts.fetch_or(bit, std::memory_order_relaxed) & bit) != 0;
  const MyTurn turn;
  if (!turn || turn.interrupts()) return {};
  if (turn.finds_half_done()) leave_half_done(ledger, reader);
  // Another condition alone removes the report at the end.
  const ReportConditions only_if = report_policy(reader).only_if;
  const bool stays = only_if.incident || only_if == ReportConditions();
  if (is_there) return stays ? reports->file.path() : std::string();
  if (reports->ended.load() || root_folder() != reports->root_at_start) return {};
  ReportOptions options;
  options.end_ns = ledger.time.now_ns();
  options.symbol_time = symbol_time_at_incident;
  // A failure is not logged here: the last report is tried again, and logs what is wrong.
  if (!write_report(ledger, reader, options)) return {};
  // A request of another thread may fail while the process ends. The last report must then replace
  // this one, which tells of a process that runs.
  reports->written.reset();
  log_info(formatted("report of an incident written to {}", reports->file.path()));
  return stays ? reports->file.path() : std::string();
}

void write_report_at_exit(ledger::Writer& ledger, bool with_names) noexcept try {
  // A failure is logged by the last report.
  if (root_folder() != reports->root_at_start || reports->ended.load()) return;
  const auto reader = open_ledger(ledger);
  const MyTurn turn;
  if (!reader || !turn || turn.interrupts()) return;
  if (turn.finds_half_done()) leave_half_done(ledger, *reader);
  if (reports->ended.load()) return;
  ReportOptions options;
  options.symbolise = with_names;
  const std::uint64_t begin_ns = ledger.time.now_ns();
  options.end_ns = begin_ns - reports->taken_ns;
  if (!is_report_wanted(*reader, options, report_policy(*reader).only_if)) return;
  const Contents contents = contents_of(*reader);
  if (!with_names)
    write_report(ledger, *reader, options);
  else if (write_named_report(ledger, *reader, options))
    reports->written = contents;
  reports->taken_ns += ledger.time.now_ns() - begin_ns;
} catch (...) {
  // There is no memory for the report.
}

// Writes the report, and says what is wrong if that fails. Returns true if the report is on disk,
// with names or without.
bool write_last_report(ledger::Writer& ledger, const ledger::Reader& reader,
                       const ReportOptions& options) {
  ReportOptions nameless = options;
  nameless.symbolise = false;
  // A report without names is written first, so that it is on disk whatever happens while names are
  // looked up. If an earlier report of this end has looked them up, a report without names is
  // written only if there is no room for them.
  const bool has_names = reports->names.has_value();
  if (!has_names && !write_report(ledger, reader, nameless)) {
    log_error(reports->file.error() + where_the_records_stay(ledger.file.path()));
    return false;
  }
  if (write_named_report(ledger, reader, options)) return true;
  std::string error = reports->file.error();
  const bool is_there = !has_names || write_report(ledger, reader, nameless);
  if (!is_there) error += where_the_records_stay(ledger.file.path());
  log_error(error);
  return is_there;
}

// Returns true if all that the user wants is on disk, with symbols or without.
bool write_final_report(ledger::Writer& ledger) noexcept try {
  const auto reader = open_ledger(ledger);
  if (!reader) return false;
  ReportOptions options;
  options.end_ns = ledger.time.now_ns() - reports->taken_ns;
  const ReportPolicy policy = report_policy(*reader);
  const bool is_wanted = is_report_wanted(*reader, options, policy.only_if);
  if (is_wanted && root_folder() != reports->root_at_start) {
    // The report's path now leads to another folder (chroot), where the user does not look for
    // it.
    log_error(
        formatted("no report: the program changed its root folder (chroot); the records are in "
                  "the ledger {} outside of it",
                  ledger.file.path()));
    return false;
  }
  const MyTurn turn;
  if (turn.finds_half_done()) leave_half_done(ledger, *reader);
  reports->ended.store(true);
  if (!turn) return say_one_is_being_written(ledger);
  if (!is_wanted) {
    reports->file.remove();
    ledger.file.header().report_number.store(0, std::memory_order_relaxed);
    log_info("no report: " + why_no_report(policy));
    return true;
  }
  // A complete report is not written again. The program's destructors have run, and threads that
  // still use their objects fail the sooner the longer the process lives.
  if (reports->written != contents_of(*reader) && !write_last_report(ledger, *reader, options))
    return false;
  log_info(formatted("report written to {}", reports->file.path()));
  remove_old_reports(reports->file.path(), reader->process().program, policy, OwnReport::may_go,
                     longest_removal_at_exit);
  return true;
} catch (...) {
  log_error("no report: out of memory while writing it");
  return false;
}

std::uint64_t leaks_at_end(const ledger::Writer& ledger) noexcept try {
  if (!reports->file.path().empty()) return reports->file.leaks();
  const auto reader = open_ledger(ledger);
  if (!reader) return 0;
  ReportOptions options;
  options.symbol_time = reports->symbol_time;
  options.symbol_memory = most_symbol_memory(reports->symbol_time);
  return LedgerReport(*reader, options).leaks();
} catch (...) {
  log_error("the leaks at the end are not counted: out of memory");
  return 0;
}

}  // namespace cuwarden::shim
