#include "tools/cuwarden/ledgers/recovery.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "reporters/files/given_file.hpp"
#include "reporters/reports/earlier_report.hpp"
#include "reporters/reports/old_reports.hpp"
#include "reporters/reports/report_file.hpp"
#include "reporters/reports/report_policy.hpp"
#include "reporters/words/error_text.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/quantities.hpp"
#include "runtime_hooks/core/clock.hpp"
#include "tools/cuwarden/ledgers/acting_as.hpp"
#include "tools/cuwarden/ledgers/ledger_file.hpp"
#include "tools/cuwarden/ledgers/ledger_search.hpp"
#include "tools/cuwarden/ledgers/running_processes.hpp"
#include "tools/cuwarden/output/progress.hpp"

namespace cuwarden {
namespace {

using ledger::EndReason;
using ledger::RegionId;

// An unfinished file that is younger than this may belong to a process that is about to fill it.
constexpr std::int64_t still_being_made_ns = 60'000'000'000;
// Attempts to lock a ledger whose process has just ended. The lock goes with the process's last
// mapping, which the kernel may remove a little after wait() has returned.
constexpr int lock_attempts = 50;
constexpr auto lock_pause = std::chrono::milliseconds(20);
constexpr const char* advice =
    "make its folder writable, or make room, or recover it with --output and another path";

// Longest duration of a rung that is believed. A damaged ledger may claim any.
constexpr std::uint64_t longest_rung_ns = std::uint64_t{366} * 24 * 3600 * 1'000'000'000;

// Returns the last moment at which the process was certainly alive, as the ledger or the file
// system shows it.
std::uint64_t last_sign_ns(const LedgerFile& file) {
  const ledger::Reader& reader = file.reader();
  std::uint64_t last = 0;
  for (std::uint64_t row = 1; row < reader.rows(RegionId::groups); ++row) {
    if (const auto group = reader.group(row)) last = std::max(last, group->last_ns);
  }
  for (std::uint64_t row = 1; row < reader.rows(RegionId::devices); ++row) {
    if (const auto device = reader.device(row)) last = std::max(last, device->time_ns);
  }
  for (std::uint64_t row = 1; row < reader.rows(RegionId::series); ++row) {
    const auto series = reader.series(row);
    if (!series) continue;
    last = std::max(last, series->worst.time_ns);
    if (series->buckets_used > 0)
      last = std::max(last, series->buckets[series->buckets_used - 1].time_ns);
  }
  for (std::uint64_t row = 1; row < reader.rows(RegionId::incidents); ++row) {
    if (const auto incident = reader.incident(row)) last = std::max(last, incident->last_ns);
  }
  // For each incident, the time at which its last recorded rung ended.
  std::map<std::uint32_t, std::uint64_t> tried_until;
  for (std::uint64_t row = 1; row < reader.rows(RegionId::incident_rungs); ++row) {
    const auto rung = reader.incident_rung(row);
    const auto incident = rung ? reader.incident(rung->incident.value) : std::nullopt;
    if (!incident) continue;
    std::uint64_t& until =
        tried_until.try_emplace(rung->incident.value, incident->time_ns).first->second;
    until += std::min(rung->duration_ns, longest_rung_ns);
    last = std::max(last, until);
  }
  const std::int64_t modified = file.modified_realtime_ns() - reader.process().start_realtime_ns;
  return modified > 0 ? std::max(last, static_cast<std::uint64_t>(modified)) : last;
}

// Returns the path of the report that the process wrote before it died; nothing if there is none.
std::optional<std::string> own_report(const ledger::Reader& reader) {
  const ledger::ProcessView process = reader.process();
  if (!process.report_number && process.end_reason == EndReason::running &&
      reader.rows(RegionId::incidents) <= 1)
    return std::nullopt;
  return earlier_report(process);
}

bool ran_here(const ledger::ProcessView& process) {
  utsname system{};
  return uname(&system) == 0 && process.host == system.nodename && pid_counts_here(process);
}

bool is_waited_for(const ledger::ProcessView& process, const RecoveryRequest& request) {
  return request.waited_for > 0 && process.pid == static_cast<std::uint32_t>(request.waited_for) &&
         pid_counts_here(process);
}

void remove_earlier(const std::optional<std::string>& path) {
  if (!path) return;
  ReportFile report(*path);
  report.adopt(*path);
  report.remove();
}

// Returns the path of the file `name` in `path` if `path` is a folder, else `path` itself.
std::string in_folder(const std::string& path, const std::string& name) {
  struct stat status {};
  const bool is_folder =
      path.ends_with('/') || (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode));
  if (!is_folder) return path;
  return path + (path.ends_with('/') ? "" : "/") + name;
}

Recovery failure(std::string text) { return {RecoveryOutcome::failed, {}, std::move(text), {}}; }
Recovery left_alone(RecoveryOutcome outcome, std::string text) {
  return {outcome, {}, std::move(text) + ": left alone", {}};
}

Recovery of_another_user(const std::string& whose) {
  return left_alone(RecoveryOutcome::other_user,
                    whose + ", and only its owner or root can recover it");
}

Recovery without_contents(const std::string& path, LedgerFile::Failure why,
                          const std::string& error) {
  if (why == LedgerFile::Failure::other_user) return of_another_user(error);
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return left_alone(RecoveryOutcome::busy, "it has just been removed");
    return failure(std::string("cannot read the ledger: ") + error_text(errno));
  }
  if (why == LedgerFile::Failure::unreadable && S_ISREG(status.st_mode) &&
      status.st_uid != geteuid()) {
    return of_another_user(belongs_to(status.st_uid));
  }
  if (why != LedgerFile::Failure::unfinished) return failure("cannot read the ledger: " + error);
  const std::int64_t changed =
      status.st_ctim.tv_sec * std::int64_t{1'000'000'000} + status.st_ctim.tv_nsec;
  if (static_cast<std::int64_t>(time_ns_of(CLOCK_REALTIME)) - changed < still_being_made_ns) {
    return left_alone(RecoveryOutcome::running, "it is being made");
  }
  // The process may live and have been stopped all the time. Then it still holds the lock.
  std::string ignored;
  int no_locks = 0;
  const auto file = LedgerFile::open_unread(path, ignored, nullptr, LedgerFile::Kind::ours);
  if (!file || (!file->lock(no_locks) && no_locks == 0)) {
    return left_alone(RecoveryOutcome::running, "it is being made");
  }
  std::string error_now;
  LedgerFile::Failure now{};
  if (LedgerFile::open(path, error_now, &now, LedgerFile::Kind::ours) ||
      now != LedgerFile::Failure::unfinished || !file->is_still_at_its_path()) {
    return left_alone(RecoveryOutcome::busy, "it has just changed");
  }
  file->remove();
  return {RecoveryOutcome::nothing_in_it,
          {},
          "its process died before it recorded anything: removed",
          {}};
}

// Returns true if the ledger's process has ended, but its lock lives on in a child. That happens if
// the child was forked while the ledger was being made. If the lock's holder is the process that
// took it, another cuwarden is at work on the ledger.
bool is_left_to_a_child(const LedgerFile& file, const ledger::ProcessView& process) {
  if (const auto holder = lock_holder(file.inode())) {
    const auto stat = process_stat(*holder);
    return !stat || stat->ended;
  }
  return process.pid_namespace != 0 && process.pid_namespace == pid_namespace_of(getpid());
}

// Returns the reason to leave the ledger alone. Null if its process has ended and no other cuwarden
// is at work on it; then this process holds the lock.
std::optional<Recovery> in_use(const LedgerFile& file, const RecoveryRequest& request) {
  const ledger::ProcessView process = file.reader().process();
  const std::string pid = std::to_string(process.pid);
  const auto is_running = [&]() -> Recovery {
    if (file.is_copy()) return {RecoveryOutcome::running, {}, about_copy_of_running(process), {}};
    return left_alone(RecoveryOutcome::running, "process " + pid + " is still running");
  };
  const bool known_dead = is_waited_for(process, request);
  int error = 0;
  bool locked = file.lock(error);
  const bool can_lock = error == 0;
  const bool unlocked_by_its_end = locked && process.lock_held && file.is_original();
  const Life life =
      known_dead || unlocked_by_its_end ? Life::ended : life_of(process, file.inode());
  if (can_lock && !locked) {
    if (life != Life::ended) return is_running();
    for (int i = 0; !locked && i < lock_attempts; ++i) {
      std::this_thread::sleep_for(lock_pause);
      locked = file.lock(error);
    }
    if (!locked && !is_left_to_a_child(file, process)) {
      return left_alone(RecoveryOutcome::busy, "another cuwarden is at work on it");
    }
  }
  if (!file.is_still_at_its_path()) {
    return left_alone(RecoveryOutcome::busy, "another cuwarden has just recovered it");
  }
  switch (life) {
    case Life::ended:
      return std::nullopt;
    case Life::running:
      return is_running();
    case Life::unknown:
      break;
  }
  return left_alone(RecoveryOutcome::out_of_sight, about_process_out_of_sight(process));
}

// Divides a message into `count` parts, at null bytes. Only the last part may hold null bytes.
std::vector<std::string> parts_of(const std::string& message, std::size_t count) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  while (parts.size() + 1 < count) {
    const std::size_t end = message.find('\0', start);
    if (end == message.npos) return {};
    parts.push_back(message.substr(start, end - start));
    start = end + 1;
  }
  parts.push_back(message.substr(start));
  return parts;
}

std::string without_null_bytes(std::string text) {
  std::erase(text, '\0');
  return text;
}

}  // namespace

Recovery recover(const std::string& ledger_path, const RecoveryRequest& request) {
  std::string error;
  LedgerFile::Failure why{};
  const auto file = LedgerFile::open(ledger_path, error, &why, LedgerFile::Kind::ours);
  if (!file) return without_contents(ledger_path, why, error);
  if (auto stop = in_use(*file, request)) return *stop;

  const ledger::ProcessView process = file->reader().process();
  const std::string subject =
      std::string(file_name(process.program.empty() ? "a program" : process.program)) + " (pid " +
      std::to_string(process.pid) + ")";
  ReportOptions options;
  options.at_rest = true;
  options.symbol_time = longest_symbol_time_afterwards;
  options.symbol_memory = most_symbol_memory_afterwards;
  StagedProgress progress;
  options.told = [&](const char* what, std::size_t done, std::size_t all) {
    progress.done(what, done, all);
  };
  const bool known_dead = is_waited_for(process, request);
  if (process.end_reason == EndReason::running) {
    if (known_dead) options.signal = request.signal;
    options.end_reason = options.signal ? EndReason::signal : EndReason::unknown;
  }
  if (!known_dead) options.end_ns = last_sign_ns(*file);

  const std::string wanted(process.report_path);
  const bool path_counts = wanted.starts_with('/') && (request.path_is_known || ran_here(process));
  const auto earlier = path_counts ? own_report(file->reader()) : std::nullopt;
  const bool goes_elsewhere = !request.output.empty();
  // If the earlier report cannot be seen from here, a second one is made, which does no harm.
  if (process.report_written && earlier && !goes_elsewhere) {
    file->remove();
    return {RecoveryOutcome::had_report,
            *earlier,
            subject + " had written its report: " + *earlier,
            {}};
  }
  const ReportPolicy policy = report_policy(file->reader());
  if (path_counts) ReportFile::remove_unfinished(process);
  if (!request.always && !goes_elsewhere &&
      !is_report_wanted(file->reader(), options, policy.only_if)) {
    remove_earlier(earlier);
    file->remove();
    return {RecoveryOutcome::not_wanted,
            {},
            subject + ": no report, since " + why_no_report(policy) + "; the ledger is removed",
            {}};
  }
  const std::string beside =
      std::string(folder_of(ledger_path)) +
      (file_name(wanted).empty() ? "cuwarden-" + std::to_string(process.pid) + ".json"
                                 : std::string(file_name(wanted)));
  ReportFile report{goes_elsewhere ? in_folder(request.output, std::string(file_name(beside)))
                    : path_counts  ? wanted
                                   : beside,
                    advice};
  if (earlier && !goes_elsewhere) report.adopt(*earlier);
  std::string text = subject + ": report: ";
  if (!report.write(file->reader(), options)) {
    if (!path_counts || goes_elsewhere) return failure(report.error());
    const std::string first_error = report.error();
    report = ReportFile(beside, advice);
    if (!report.write(file->reader(), options)) return failure(first_error);
  }
  if (goes_elsewhere) {
    if (!process.report_written) remove_earlier(earlier);
  } else {
    remove_old_reports(report.path(), process.program, policy, OwnReport::stays,
                       longest_removal_afterwards);
  }
  Recovery done{RecoveryOutcome::recovered, report.path(), text + report.path(), {}};
  if (report.ledger_is_damaged()) {
    done.kept = file->set_aside();
    done.text += "; the ledger is damaged and stays at " + done.kept;
  } else {
    file->remove();
  }
  return done;
}

// The file may have another owner by the time that recover() opens it. So recover() leaves a file
// alone if it does not belong to the user that it acts as.
Recovery recover_as_owner(const std::string& ledger_path, const RecoveryRequest& request,
                          TimeForUsers& time) {
  struct stat status {};
  if (geteuid() != 0 || lstat(ledger_path.c_str(), &status) != 0 || status.st_uid == 0) {
    return recover(ledger_path, request);
  }
  const uid_t owner = status.st_uid;
  if (time.left(owner) <= std::chrono::nanoseconds{}) {
    return {.outcome = RecoveryOutcome::no_time,
            .text = belongs_to(owner) +
                    ", whose other ledgers have used up the time for one user; " +
                    "it was left alone",
            .owner = owner};
  }
  const auto limit = time.left(owner);
  const auto work = [&] {
    const Recovery done = recover(ledger_path, request);
    std::string content;
    if (!done.report.empty() && request.wants_content) {
      if (!read_object_file(done.report, largest_report, content).empty()) content.clear();
    }
    return std::to_string(static_cast<int>(done.outcome)) + '\0' + without_null_bytes(done.report) +
           '\0' + without_null_bytes(done.kept) + '\0' + without_null_bytes(done.text) + '\0' +
           content;
  };
  constexpr std::size_t most_words = 64 << 10;
  const ChildsAnswer answer = ask_as_user(owner, time, largest_report + most_words, work);
  if (answer.failure == ChildsAnswer::Failure::late) {
    return failure(belongs_to(owner) + ", and was not recovered with that user's rights within " +
                   human_time(static_cast<std::uint64_t>(limit.count())) +
                   "; `cuwarden recover --timeout TIME` allows more time");
  }
  const auto parts = parts_of(answer.text, 5);
  if (parts.empty() || parts[0].empty())
    return failure("it cannot be recovered with the rights of its owner");
  static_assert(static_cast<int>(RecoveryOutcome::no_time) <= 9, "the outcome is sent as a digit");
  return {.outcome = static_cast<RecoveryOutcome>(parts[0][0] - '0'),
          .report = parts[1],
          .text = parts[3],
          .kept = parts[2],
          .owner = owner,
          .content = parts[4]};
}

}  // namespace cuwarden
