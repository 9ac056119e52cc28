#include "shim/process/process.hpp"

#include <unistd.h>

#include <chrono>
#include <new>
#include <string>

#include "reporters/words/printable.hpp"
#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/files/open_file.hpp"
#include "runtime_hooks/core/futex_wait.hpp"
#include "runtime_hooks/core/memory/own_memory.hpp"
#include "runtime_hooks/core/memory/wiped_page.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "runtime_hooks/core/wait_budget.hpp"
#include "runtime_hooks/driver/calling_threads.hpp"
#include "runtime_hooks/hooks/call/hooked_call.hpp"
#include "runtime_hooks/hooks/graphs/graph_memory.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/allocation_records/threads.hpp"
#include "runtime_hooks/ledger/write/names.hpp"
#include "runtime_hooks/stacks/stack_bounds.hpp"
#include "shim/files/ledger_folder.hpp"
#include "shim/files/report_pattern.hpp"
#include "shim/interpose/caller_tables.hpp"
#include "shim/interpose/driver_table.hpp"
#include "shim/interpose/early_lookups.hpp"
#include "shim/interpose/namespaces.hpp"
#include "shim/policy/host_process.hpp"
#include "shim/policy/serving_notices.hpp"
#include "shim/policy/spill_settings.hpp"
#include "shim/probes/memory_of_others.hpp"
#include "shim/process/debug_lines.hpp"
#include "shim/process/device_holders.hpp"
#include "shim/process/exit_hooks.hpp"
#include "shim/process/incident_explanations.hpp"
#include "shim/process/reports.hpp"
#include "shim/process/seccomp_watch.hpp"
#include "shim/process/stack_room.hpp"
#include "shim/process/start_facts.hpp"
#include "shim/python/interpreter_calls.hpp"
#include "shim/python/interpreter_end.hpp"
#include "shim/reachability/lost_allocations.hpp"
#include "shim/support/held_signals.hpp"
#include "shim/support/log.hpp"
#include "shim/support/message_output.hpp"
#include "shim/support/own_stack.hpp"
#include "shim/support/ready_unwinder.hpp"
#include "shim/support/steps_under_way.hpp"
#include "shim/support/thread_stack.hpp"

namespace cuwarden::shim {

constinit std::atomic<bool> passes_through{false};

namespace {

constinit Process the_process;
constinit Settings settings{};  // read once, at the first CUDA call
// Storage of the session. A forked child makes a new one in place.
alignas(hooks::Session) constinit unsigned char session_storage[sizeof(hooks::Session)]{};

// Lines about settings, kept until the log is set up that the settings choose. A line feed in a
// value does not begin a line.
constinit std::string* complaints = nullptr;
void keep_complaint(std::string_view line) {
  complaints->append(printable(std::string(line)));
  complaints->push_back('\n');
}

void read_settings_and_set_up_log() {
  std::string kept;
  complaints = &kept;
  read_settings(settings, keep_complaint);
  complaints = nullptr;
  set_up_log(settings);
  for (std::size_t at = 0; at < kept.size();) {
    const std::size_t end = kept.find('\n', at);
    log_warn(std::string_view(kept).substr(at, end - at));
    at = end + 1;
  }
}

constinit EarlyLookups early_lookups;
constinit IncidentExplanations incident_explanations;
constinit ServingNotices serving_notices;
constinit DeviceHolderList device_holders;

}  // namespace

Process& Process::get() noexcept { return the_process; }

// Adds a report's path to the list for `cuwarden run`. A null byte ends each path, since a path may
// have a line feed.
void Process::tell(std::string_view path) noexcept try {
  if (settings.report_list[0] == '\0' || path.empty()) return;
  const std::string line = std::string(path) + '\0';
  const Descriptor list = open_to_append(settings.report_list, false);
  if (list) write_without_harm(list.number(), line);
} catch (...) {
}  // no memory for the line

bool Process::enabled() noexcept {
  int known = enabled_.load(std::memory_order_relaxed);
  if (known < 0) {
    known = enabled_by_environment() ? 1 : 0;
    enabled_.store(known, std::memory_order_relaxed);
  }
  return known == 1;
}

bool Process::drops_deepbind() noexcept { return enabled() && drops_deepbind_by_environment(); }

hooks::Session* Process::start() noexcept {
  // A hooked call inside another one, or inside the shim's own work, begins nothing.
  if (hooks::call_state.driver_depth > 0) return nullptr;
  if (!enabled()) {
    turn_off();
    return nullptr;
  }
  // Recording cannot begin in a confined thread: in a forked child of one, or if CUDA was loaded
  // after the filter was installed.
  if (is_confined() && !has_records()) return nullptr;
  // Marked before the state changes from `fresh`. So a forked child can tell a state that it
  // inherited from its own: an inherited one is about threads that the child does not have.
  memory_.mark();
  for (;;) {
    if (!memory_.is_ours() && !memory_.take_over(system_clock, [] { the_process.begin_anew(); }))
      return nullptr;
    State state = state_.load(std::memory_order_acquire);
    if (state == State::off || state == State::stopped) return nullptr;
    if (state == State::recording) return session_;
    if (state == State::ended) {
      if (state_.compare_exchange_strong(state, State::recording)) {
        leaks_remain_ = false;
        begins_with_report_.store(false, std::memory_order_relaxed);
        lost_are_found_.store(false, std::memory_order_relaxed);
        ledger_->file.header().report_written.store(0, std::memory_order_relaxed);
        ledger_->set_end(ledger::EndReason::running, 0, false);
      }
      continue;
    }
    if (state == State::starting) {
      if (!wait_for_start()) return nullptr;
      continue;
    }
    // Signals are held back, because a handler would find the process between two states. It
    // could wait for the start that it interrupted, or leave it by a jump.
    const HeldSignals held;
    if (!state_.compare_exchange_strong(state, State::starting)) continue;
    const ErrnoGuard keep;
    const Uncancelled whole;
    ++hooks::call_state.driver_depth;
    // The start gets a stack of its own: the first call may come from a thread with 16 KiB.
    hooks::Session* made = nullptr;
    call_on_own_stack(
        [](void* answer) {
          *static_cast<hooks::Session**>(answer) = Process::get().start_recording();
        },
        &made);
    --hooks::call_state.driver_depth;
    if (made != nullptr)
      steps_under_way.hand_over(
          owner(), *ledger_, [this] { state_.store(State::recording, std::memory_order_release); });
    else
      turn_off();
    futex_wake_all(state_);
    return made;
  }
}

bool Process::wait_for_start() noexcept {
  constexpr std::uint64_t longest_ns = 10'000'000'000;
  constexpr timespec look_again{.tv_sec = 0, .tv_nsec = 100'000'000};
  const std::uint64_t begin_ns = now_ns();
  while (state_.load(std::memory_order_acquire) == State::starting) {
    if (start_is_slow_.load(std::memory_order_relaxed)) return false;
    if (now_ns() - begin_ns > longest_ns) start_is_slow_.store(true, std::memory_order_relaxed);
    futex_wait(state_, State::starting, &look_again);
  }
  return true;
}

void Process::turn_off() noexcept {
  state_.store(State::off, std::memory_order_release);
  passes_through.store(true, std::memory_order_relaxed);
}

// Begins anew in a forked child, at its first CUDA call. The parent's records stay the parent's,
// and unfinished work of the parent's threads is dropped.
void Process::begin_anew() noexcept {
  if (state_.load(std::memory_order_relaxed) != State::off)
    state_.store(State::fresh, std::memory_order_relaxed);
  start_is_slow_.store(false, std::memory_order_relaxed);
  confinement_in_fork();
  own_stacks_in_fork();
  end_turn_.reset();
  leaks_remain_ = false;
  begins_with_report_.store(false, std::memory_order_relaxed);
  lost_are_found_.store(false, std::memory_order_relaxed);
  OwnMemory::forget_all();
  end_budget_.renew(longest_waiting_at_end_ns);
  driver::calling_threads.forked();
  hooks::forget_graphs();
  reclaimers.forked();
}

void Process::looked_up_unhooked(const char* name) noexcept {
  const ErrnoGuard keep;
  const Uncancelled whole;
  if (has_records())
    ledger_->names.count_unhooked_lookup(name);
  else
    early_lookups.keep(name);
}

void Process::loaded() noexcept {
  if (enabled()) memory_.mark();
}

int Process::owner() const noexcept { return memory_.is_ours() ? memory_.owner() : getpid(); }

hooks::Session* Process::start_recording() noexcept {
  make_unwinder_ready();  // if a library's constructor calls CUDA before the shim's own runs
  try {
    confinement_at_start();
    read_settings_and_set_up_log();
    if (!memory_.is_marked()) {
      log_warn(
          "memory cannot be marked for forks (madvise MADV_WIPEONFORK): the kernel is older than "
          "Linux 4.14, or a seccomp filter refuses it; nothing is recorded");
      return nullptr;
    }
    const std::string report_path =
        expand_report_path(settings.report, settings.ledger_folder, owner());
    stacks::ask_thread_stacks(find_thread_stack);
    ledger_ = make_ledger(settings, report_path, owner());
    if (ledger_ == nullptr) {
      log_warn("no memory for the ledger; nothing is recorded");
      return nullptr;
    }
    end_turn_.set_symbol_time(settings.symbol_time_ns);
    set_up_reports(report_path, std::chrono::nanoseconds(settings.symbol_time_ns));
    status_of_leaks_ = static_cast<int>(settings.exit_code);
    reserve_own_stack();
    note_beginnings_of_stacks();
    const pool::SpillSettings spill = spill_settings(settings);
    session_ = new (session_storage) hooks::Session(*ledger_, real_driver(),
                                                    {.process = this_process,
                                                     .completeness = *this,
                                                     .notices = serving_notices,
                                                     .probes = incident_explanations,
                                                     .holders = &device_holders,
                                                     .reclaimers = &reclaimers,
                                                     .spill = spill},
                                                    settings);
    hooks::frames_prove_left.store([](const void* frame, const void* own_frame) noexcept {
      return has_left(get().session_->sites, frame, own_frame);
    });
    begin_searches(*session_, settings.reachability);
    incident_explanations.begin(*ledger_, session_->sites);
    device_holders.begin(session_->sites);
    serving::answers_differ.store(spill.visible_bytes != 0, std::memory_order_release);
    note_start(*ledger_, settings);
    early_lookups.tell(*ledger_);
    tell(ledger_->file.path());
    say_what_recording_begins_with(settings, ledger_->file.path(), report_path);
    if (settings.reachability != ReachabilityMode::off)
      expect_interpreters_end(&Process::interpreter_ends);
    if (settings.frameworks) interpreter_calls.turn_on();
    interpreter_calls.ask({});
    return session_;
  } catch (...) {
    log_warn("out of memory while starting; nothing is recorded");
    return nullptr;
  }
}

// Logs the loss when it happens, besides the report: a user who watches the log can still act.
void Process::ledger_is_incomplete(ledger::Reason reason) noexcept {
  const Uncancelled whole;
  const bool stops = reason == ledger::reason_recording_stopped;
  for (State seen : {State::recording, State::ended})
    if (stops) state_.compare_exchange_strong(seen, State::stopped);
  if (is_confined()) return;
  call_on_own_stack_if_small(
      [](void* stopped) { say_ledger_is_incomplete(*the_process.ledger_, stopped != nullptr); },
      stops ? &the_process : nullptr);
}

void Process::modules_changed() noexcept {
  if (!has_records()) return;
  const ErrnoGuard keep;
  const Uncancelled whole;
  session_->sites.modules_changed();
}

void Process::driver_initialised() noexcept {
  if (exit_handler_set_.load(std::memory_order_relaxed) || exit_handler_set_.exchange(true)) return;
  const ErrnoGuard keep;
  expect_exit();
}

bool Process::shares_memory_of_another() const noexcept {
  const int owner = memory_.owner();
  return owner != 0 && !memory_.belongs_to_caller();
}

bool Process::may_begin() noexcept {
  return state_.load(std::memory_order_acquire) == State::fresh && enabled() && memory_.is_ours();
}

std::uint64_t Process::thread_row() const noexcept { return ledger_->threads.known_row(); }

void Process::wait_for_end(std::atomic<std::uint32_t>& done) noexcept {
  if (!may_wait_at_end()) return;
  const ErrnoGuard keep;
  const Uncancelled whole;
  end_turn_.wait_until(done);
}

void Process::end_unrecorded() noexcept try {
  if (dlmopen_was_called()) note_unseen_driver();
  if (!is_debug_wanted() || has_records()) return;
  read_settings_and_set_up_log();
  say_why_nothing_was_recorded();
} catch (...) {
  // Without memory nothing is said.
}

void Process::tell_of_failures() noexcept { incident_explanations.end(); }

}  // namespace cuwarden::shim
