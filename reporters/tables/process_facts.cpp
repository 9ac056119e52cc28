#include "reporters/tables/process_facts.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <utility>

#include "reporters/model/each_row.hpp"
#include "reporters/words/error_text.hpp"
#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/files/boot_id.hpp"
#include "runtime_hooks/core/files/cgroup_memory.hpp"
#include "runtime_hooks/core/files/small_file.hpp"
#include "runtime_hooks/core/job.hpp"

namespace cuwarden {
namespace {

using ledger::EndReason;
using ledger::RegionId;

model::Text end_reason_name(EndReason reason) {
  static constexpr std::string_view names[] = {"running", "exit",   "_exit", "quick_exit",
                                               "abort",   "signal", ""};
  static_assert(std::size(names) == static_cast<std::size_t>(EndReason::unknown) + 1);
  return model::text_or_null(names[static_cast<std::size_t>(reason)]);
}

std::vector<std::string> words(std::string_view zero_separated) {
  std::vector<std::string> list;
  while (!zero_separated.empty()) {
    const auto end = zero_separated.find('\0');
    list.emplace_back(zero_separated.substr(0, end));
    if (end == zero_separated.npos) break;
    zero_separated.remove_prefix(end + 1);
  }
  return list;
}

}  // namespace

std::uint64_t end_of(const ledger::ProcessView& process, const ReportOptions& options) noexcept {
  if (options.end_ns) return *options.end_ns;
  const std::uint64_t now = now_ns();
  return now > process.start_monotonic_ns ? now - process.start_monotonic_ns : 0;
}

std::string iso_8601(std::int64_t realtime_ns) {
  // The date is computed from the calendar, because libc's functions read the time zone's file.
  using namespace std::chrono;
  const sys_time<nanoseconds> time{nanoseconds(realtime_ns)};
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  char text[64];
  std::snprintf(
      text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%09dZ", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
      static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text;
}

std::string driver_package_version() {
  char text[64];
  const std::string_view version = read_small_file("/sys/module/nvidia/version", text);
  return std::string(version.substr(0, version.find_first_of(" \n")));
}

std::optional<std::string> refused_growth(ledger::GrowthOperation operation, int error) {
  using ledger::GrowthOperation;
  // madvise(MADV_POPULATE_WRITE) says EFAULT where the disk is full.
  constexpr int lacks_of_room[] = {ENOSPC, EDQUOT, EFBIG, ENOMEM, EFAULT, ENOENT, EMFILE, ENFILE};
  if (operation == GrowthOperation::none || std::ranges::count(lacks_of_room, error) != 0)
    return std::nullopt;
  const char* const step = operation == GrowthOperation::open       ? "open its file"
                           : operation == GrowthOperation::allocate ? "allocate room in its file"
                           : operation == GrowthOperation::map      ? "map memory"
                                                                    : "allow access to memory";
  return std::string("the system refused to ") + step + " (" + error_text(error) + ")";
}

std::string version_text(int version) {
  if (version <= 0) return {};
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

model::Process process_of(const ledger::ProcessView& process, const ReportOptions& options,
                          std::uint64_t end_ns) {
  const EndReason reason = options.end_reason.value_or(process.end_reason);
  model::Process row;
  row.pid = process.pid;
  row.parent = process.parent;
  row.program = model::text_or_null(process.program);
  row.command_line = words(process.command_line);
  row.host = model::text_or_null(process.host);
  row.start = iso_8601(process.start_realtime_ns);
  row.end_ns = end_ns;
  if (process.steps != 0) row.steps = process.steps;
  row.end_reason = end_reason_name(reason);
  const bool exited =
      reason != EndReason::signal && reason != EndReason::abort && reason != EndReason::running;
  if (exited) row.exit_status = process.exit_status;
  if (options.signal) row.signal = static_cast<std::uint64_t>(*options.signal);
  if (reason == EndReason::abort) row.signal = SIGABRT;
  row.cuda_driver_version = model::text_or_null(version_text(process.driver_version));
  row.driver_package_version = model::text_or_null(driver_package_version());
  row.cuda_runtime_version = model::text_or_null(version_text(process.runtime_version));
  return row;
}

std::optional<model::MemoryCgroup> memory_cgroup_of(const ledger::ProcessView& process) {
  // A cgroup's inode number is unique only on one kernel, from its boot to the next.
  if (process.memory_cgroup.empty() || which_boot(process.boot_id) != Boot::this_one)
    return std::nullopt;
  const std::string path(process.memory_cgroup);
  const auto memory = read_cgroup_memory(path.c_str(), process.memory_cgroup_inode);
  if (!memory) return std::nullopt;
  const std::uint64_t before = process.memory_cgroup_oom_kills;
  model::MemoryCgroup row;
  row.path = path;
  row.limit_bytes = memory->limit_bytes;
  row.peak_bytes = memory->peak_bytes;
  if (memory->oom_kills && *memory->oom_kills >= before)
    row.oom_kills = *memory->oom_kills - before;
  return row;
}

std::optional<model::PointerSearch> pointer_search_of(const ledger::ProcessView& process) {
  const auto reason = [&]() -> const char* {
    switch (process.reach_search) {
      case ReachSearch::not_made:
      case ReachSearch::complete:
      case ReachSearch::switched_off:
        break;
      case ReachSearch::out_of_time:
        return "the process has more memory than could be searched within two seconds; "
               "CUWARDEN_REACHABILITY=on sets no limit";
      case ReachSearch::pages_swapped:
        return "a part of the process's memory was in swap space";
      case ReachSearch::pages_unknown:
        return "the system did not allow to look at the process's memory (/proc/self/pagemap)";
      case ReachSearch::records_unknown:
        return "the driver's own records could not be told from the program's pointers: the driver "
               "was busy, or the process does not use glibc's malloc";
      case ReachSearch::no_memory:
        return "there was too little memory for the search";
      case ReachSearch::interpreter_ended:
        return "Python had freed its objects, and the pointers in them, before the search";
    }
    return nullptr;
  }();
  if (process.reach_search == ReachSearch::not_made ||
      process.reach_search == ReachSearch::switched_off)
    return std::nullopt;
  model::PointerSearch row;
  row.is_complete = process.reach_search == ReachSearch::complete;
  if (reason != nullptr) row.reason = reason;
  row.scanned_bytes = process.reach_scanned_bytes;
  row.taken_ns = process.reach_ns;
  return row;
}

model::Job job_of(const ledger::Reader& reader) {
  const Job job = job_from([&](std::string_view name) -> std::optional<std::string_view> {
    for (std::uint64_t row = 1; row < reader.rows(RegionId::environment); ++row) {
      const auto variable = reader.environment(row);
      if (variable && variable->name == name) return variable->value;
    }
    return std::nullopt;
  });
  model::Job row;
  row.scheduler = job.scheduler;
  row.job_id = job.id;
  row.job_step = job.step;
  row.array_task = job.array_task;
  if (job.rank) row.rank = static_cast<std::uint64_t>(*job.rank);
  row.visible_devices = job.visible_devices;
  return row;
}

void put_settings(const ledger::Reader& reader, Put<model::Setting> put) {
  // A row without a name is left out, and is among the reasons.
  each_row(reader, RegionId::settings, &ledger::Reader::setting, [&](const auto& setting) {
    if (setting.name.starts_with("CUWARDEN_"))
      put({std::string(setting.name), std::string(setting.value),
           setting.from_environment ? "environment" : "default"});
  });
}

void put_environment(const ledger::Reader& reader, Put<model::Variable> put) {
  each_row(reader, RegionId::environment, &ledger::Reader::environment, [&](const auto& variable) {
    if (!variable.name.empty()) put({std::string(variable.name), std::string(variable.value)});
  });
}

void put_hooks(const ledger::Reader& reader, Put<model::HookCalls> put) {
  each_row(reader, RegionId::hooks, &ledger::Reader::hook, [&](const auto& hook) {
    if (hook.calls != 0 && !hook.name.empty()) put({std::string(hook.name), hook.calls});
  });
}

void put_unhooked_lookups(const ledger::Reader& reader, Put<model::UnhookedLookup> put) {
  each_row(reader, RegionId::unhooked_lookups, &ledger::Reader::unhooked_lookup,
           [&](const auto& lookup) {
             if (!lookup.name.empty()) put({std::string(lookup.name), lookup.count});
           });
}

model::Overhead overhead_of(const ledger::ProcessView& process) {
  model::Overhead row;
  row.recorded_calls = process.recorded_calls;
  // The time is not measured.
  if (process.recorded_calls == 0) row.shim_ns = 0;
  row.ledger_bytes = process.ledger_bytes;
  return row;
}

namespace {

void add_if(const ledger::ProcessView& process, std::uint32_t reason, std::string sentence,
            std::vector<std::string>& reasons) {
  if ((process.reasons & reason) != 0) reasons.push_back(std::move(sentence));
}

// True if the reader does not see the parts of the ledger that lie in the process's memory only.
bool is_read_from_outside(const ReportOptions& options) {
  return options.at_rest || options.end_reason == EndReason::running;
}

}  // namespace

std::vector<std::string> record_reasons(const ledger::ProcessView& process,
                                        const LedgerDamage& damage, const ReportOptions& options) {
  std::vector<std::string> reasons;
  if (damage.any()) reasons.push_back(damage.sentence());
  const auto refused = refused_growth(process.growth_operation, process.growth_error);
  if (is_read_from_outside(options)) {
    add_if(process, ledger::reason_ledger_partly_in_memory,
           refused ? *refused + " while the ledger grew: later records are missing"
                   : "the disk filled up while the ledger grew: later records are missing "
                     "(set CUWARDEN_LEDGER_DIR to a local folder with more room)",
           reasons);
  }
  add_if(process, ledger::reason_ledger_full,
         refused
             ? *refused + " when the ledger had to grow: later allocations or stacks are missing"
             : "a table of the ledger was full: later allocations or stacks are missing",
         reasons);
  add_if(process, ledger::reason_confined,
         "the program confined itself by a seccomp filter, behind which the ledger does not grow: "
         "later allocations or stacks are missing",
         reasons);
  add_if(process, ledger::reason_recording_stopped,
         "recording stopped after an internal failure (a lock of the ledger was not given back): "
         "later calls passed through unrecorded",
         reasons);
  return reasons;
}

std::vector<std::string> tool_reasons(const ledger::ProcessView& process,
                                      const ReportOptions& options) {
  std::vector<std::string> reasons;
  const auto refused = refused_growth(process.growth_operation, process.growth_error);
  add_if(process, ledger::reason_ledger_in_memory,
         "no folder would take the ledger's file: nothing could have been recovered after a kill "
         "(set CUWARDEN_LEDGER_DIR to a local folder)",
         reasons);
  if (!is_read_from_outside(options)) {
    add_if(process, ledger::reason_ledger_partly_in_memory,
           refused
               ? *refused +
                     " while the ledger grew: after a kill only a part could have been recovered"
               : "the disk filled up while the ledger grew: after a kill only a part could have "
                 "been recovered (set CUWARDEN_LEDGER_DIR to a local folder with more room)",
           reasons);
  }
  add_if(process, ledger::reason_names_missing,
         "a table of names was full: some threads, modules, devices or settings have none",
         reasons);
  // Stacks that end in code without unwind information, such as a JIT compiler's, are not counted:
  // no unwinder leaves such code.
  const std::uint64_t cut =
      process.stacks_cut[0] + process.stacks_cut[3] + process.stacks_cut[4] + process.stacks_cut[5];
  if (cut > 0)
    reasons.push_back(
        std::to_string(cut) + (cut == 1 ? " stack was" : " stacks were") +
        " not walked to the end, at frames that the unwinder cannot leave: `truncated` "
        "marks them");
  return reasons;
}

std::vector<std::string> coverage_reasons(const ledger::Reader& reader) {
  std::vector<std::string> reasons;
  std::uint64_t names = 0;
  std::string first;
  for (std::uint64_t row = 1; row < reader.rows(RegionId::unhooked_lookups); ++row) {
    const auto lookup = reader.unhooked_lookup(row);
    if (!lookup || lookup->count == 0) continue;
    if (names++ == 0) first = lookup->name;
  }
  if (names > 0) {
    reasons.push_back("the program looked up " + std::to_string(names) +
                      (names == 1 ? " memory function that is" : " memory functions that are") +
                      " not hooked (" + first + (names == 1 ? "" : ", …") +
                      "): allocations made through them are missing");
  }
  const ledger::ProcessView process = reader.process();
  if ((process.reasons & ledger::reason_driver_out_of_sight) != 0) {
    reasons.emplace_back(
        "the program loaded a libcuda into a namespace of its own (dlmopen): allocations "
        "made through it are missing");
  }
  if (process.unknown_frees > 0) {
    reasons.push_back(std::to_string(process.unknown_frees) +
                      (process.unknown_frees == 1 ? " free was" : " frees were") +
                      " of addresses that were never recorded: some allocations were made where "
                      "no hook saw them");
  }
  if (process.superseded > 0) {
    reasons.push_back(std::to_string(process.superseded) +
                      (process.superseded == 1 ? " address was" : " addresses were") +
                      " handed out again before the recorded free: some frees were made where no "
                      "hook saw them");
  }
  return reasons;
}

}  // namespace cuwarden
