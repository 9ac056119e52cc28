#include "shim/process/reports.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <optional>

#include "reporters/reports/old_reports.hpp"
#include "reporters/reports/report_file.hpp"
#include "reporters/reports/report_policy.hpp"
#include "reporters/symbols/naming.hpp"
#include "reporters/symbols/symbol_budget.hpp"
#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/thread_id.hpp"
#include "runtime_hooks/core/wait_budget.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"
#include "shim/files/ledger_location.hpp"
#include "shim/policy/host_process.hpp"
#include "shim/support/log.hpp"

namespace cuwarden::shim {
namespace {

// While the program waits: what has no name by then has its module and offset.
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

// Returns the most bytes of memory that reading debug information may take. A container that has
// little left would kill the process for them.
std::size_t most_symbol_memory(std::chrono::nanoseconds symbol_time) {
  // A user who allows more time wants the lines.
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

// The end of a process, and the calls that the ledger has then: two equal ones have one report.
struct Contents {
  ledger::EndReason end_reason;
  std::optional<int> exit_status;
  std::uint64_t calls;
  bool operator==(const Contents&) const = default;
};

Contents contents_of(const ledger::Reader& reader) {
  const ledger::ProcessView process = reader.process();
  return {process.end_reason, process.exit_status, process.recorded_calls};
}

// Made anew in a forked child, in place.
struct Reports {
  Reports(const std::string& path, std::chrono::nanoseconds time)
      : file(path), symbol_time(time), root_at_start(root_folder()) {}
  ReportFile file;
  std::chrono::nanoseconds symbol_time;
  Root root_at_start;
  // Made for the first report that has names; later ones find them at once. Used under the lock.
  std::optional<Names> names;
  // Nanoseconds that write_report_at_exit() has taken. They are none of the program's life.
  std::uint64_t taken_ns = 0;
  // Contents of the report with names that write_report_at_exit() wrote; null: it wrote none. Used
  // under the lock.
  std::optional<Contents> written;
  // Held by the thread that writes: all reports are the same file.
  FutexLock lock;
  std::atomic<int> writer{0};              // thread that holds it
  std::atomic<bool> ended{false};          // the last one has been begun
  std::atomic<std::uint32_t> verdicts{0};  // that a report was written for: a bit each
};
alignas(Reports) constinit unsigned char storage[sizeof(Reports)]{};
constinit Reports* reports = nullptr;

// The lock of all reports, held for the length of a scope, if the thread that writes gives it back.
// That thread is at work: the time of waiting for it is none of the end's budget.
class [[nodiscard]] WriterLocked {
 public:
  WriterLocked() {
    if (locked_) reports->writer.store(own_thread_id());
  }
  ~WriterLocked() {
    if (!locked_) return;
    reports->writer.store(0);
    reports->lock.unlock();
  }
  WriterLocked(const WriterLocked&) = delete;
  WriterLocked& operator=(const WriterLocked&) = delete;
  explicit operator bool() const { return locked_; }

 private:
  bool locked_ = [] {
    const WaitBudget::Scope unbounded(nullptr);
    return reports->lock.lock();
  }();
};

std::optional<ledger::Reader> open_ledger(const ledger::Writer& ledger) {
  ledger::ReadError error;
  auto reader = ledger::Reader::open(ledger.bytes(), error);
  if (!reader) log_error(fmt::format("no report: the ledger cannot be read: {}", error.text));
  return reader;
}

// True if the report is on disk. The ledger gets its name, so that `run` or `recover` can replace
// it.
bool write_report(ledger::Writer& ledger, const ledger::Reader& reader,
                  const ReportOptions& options) {
  if (!reports->file.write(reader, options)) return false;
  ledger.header().report_number.store(reports->file.number() + 1, std::memory_order_relaxed);
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
            where_the_records_stay(ledger.path()));
  return false;
}

}  // namespace

void set_up_reports(const std::string& path, std::chrono::nanoseconds symbol_time) {
  reports = new (storage) Reports(path, symbol_time);
}

std::string_view told_of_report() noexcept {
  return reports->file.path().empty() ? no_report_wanted : std::string_view(reports->file.path());
}

void write_incident_report(ledger::Writer& ledger, const ledger::Reader& reader,
                           std::uint32_t verdict) {
  if (reports->file.wanted() == path_of_no_report) return;
  const std::uint32_t bit = 1u << verdict;
  if ((reports->verdicts.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return;
  const WriterLocked locked;
  if (!locked || reports->ended.load() || root_folder() != reports->root_at_start) return;
  ReportOptions options;
  options.end_ns = ledger.time.now_ns();
  options.symbol_time = symbol_time_at_incident;
  // The last report is tried again, and says what is wrong.
  if (write_report(ledger, reader, options))
    log_info(fmt::format("report of an incident written to {}", reports->file.path()));
}

// A signal handler ends the process while its own thread writes an earlier report, which would keep
// the lock for ever: the last one is written by another object, and replaces what there is.
// False where the other object is interrupted, too.
bool leave_interrupted_report(ledger::Writer& ledger, const ledger::Reader& reader) {
  alignas(Reports) static constinit unsigned char other[sizeof(Reports)]{};
  if (static_cast<void*>(reports) == other) return false;
  const bool is_there = ledger.header().report_number.load(std::memory_order_relaxed) != 0;
  const std::string earlier = is_there ? reports->file.path() : std::string();
  const ledger::ProcessView process = reader.process();
  ReportFile::remove_unfinished(process);
  auto* const fresh = new (other) Reports(std::string(process.report_path), reports->symbol_time);
  fresh->root_at_start = reports->root_at_start;
  if (is_there) fresh->file.adopt(earlier);
  reports = fresh;
  return true;
}

void write_report_at_exit(ledger::Writer& ledger, bool with_names) noexcept try {
  // The last report says what is wrong.
  if (root_folder() != reports->root_at_start || reports->ended.load() ||
      reports->writer.load() == own_thread_id())
    return;
  const auto reader = open_ledger(ledger);
  const WriterLocked locked;
  if (!reader || !locked || reports->ended.load()) return;
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
  // No memory.
}

// Writes the report, and says what is wrong if that fails. Returns true if the report is on disk,
// with names or without.
bool write_last_report(ledger::Writer& ledger, const ledger::Reader& reader,
                       ReportOptions options) {
  ReportOptions nameless = options;
  nameless.symbolise = false;
  // First without names, so that there is a report whatever happens while they are looked up. If an
  // earlier report of this end has looked them up, the one without is for the case that there is no
  // room for them.
  const bool has_names = reports->names.has_value();
  if (!has_names && !write_report(ledger, reader, nameless)) {
    log_error(reports->file.error() + where_the_records_stay(ledger.path()));
    return false;
  }
  if (write_named_report(ledger, reader, options)) return true;
  std::string error = reports->file.error();
  const bool is_there = !has_names || write_report(ledger, reader, nameless);
  if (!is_there) error += where_the_records_stay(ledger.path());
  log_error(error);
  return is_there;
}

// True where all that is wanted is on disk, with symbols or without.
bool write_final_report(ledger::Writer& ledger) noexcept try {
  const auto reader = open_ledger(ledger);
  if (!reader) return false;
  ReportOptions options;
  options.end_ns = ledger.time.now_ns() - reports->taken_ns;
  const ReportPolicy policy = report_policy(*reader);
  const bool is_wanted = is_report_wanted(*reader, options, policy.only_if);
  if (is_wanted && root_folder() != reports->root_at_start) {
    // The report's path would lead to another folder now, in which the user does not look for it.
    log_error(
        fmt::format("no report: the program changed its root folder (chroot); the records are in "
                    "the ledger {} outside",
                    ledger.path()));
    return false;
  }
  if (reports->writer.load() == own_thread_id() && !leave_interrupted_report(ledger, *reader))
    return say_one_is_being_written(ledger);
  reports->ended.store(true);
  const WriterLocked locked;
  if (!locked) return say_one_is_being_written(ledger);
  if (!is_wanted) {
    reports->file.remove();
    ledger.header().report_number.store(0, std::memory_order_relaxed);
    log_info("no report: " + why_no_report(policy));
    return true;
  }
  // A report that has all is not written again: the program's destructors have run, and threads
  // that still use its objects fail the sooner the longer the process lives.
  if (reports->written != contents_of(*reader) && !write_last_report(ledger, *reader, options))
    return false;
  log_info(fmt::format("report written to {}", reports->file.path()));
  remove_old_reports(reports->file.path(), reader->process().program, policy, OwnReport::may_go,
                     longest_removal_at_exit);
  return true;
} catch (...) {
  log_error("no report: out of memory while writing it");
  return false;
}

}  // namespace cuwarden::shim
