// The end of a process's records: the part of Process that runs from the first exit handler on.
#include <atomic>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "runtime_hooks/core/wait_budget.hpp"
#include "runtime_hooks/hooks/call/hooked_call.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "shim/interpose/caller_tables.hpp"
#include "shim/interpose/namespaces.hpp"
#include "shim/process/debug_lines.hpp"
#include "shim/process/exit_readings.hpp"
#include "shim/process/process.hpp"
#include "shim/process/reports.hpp"
#include "shim/process/seccomp_watch.hpp"
#include "shim/process/stack_room.hpp"
#include "shim/reachability/lost_allocations.hpp"
#include "shim/support/log.hpp"
#include "shim/support/own_stack.hpp"

namespace cuwarden::shim {

// Writes a report before the driver is asked anything, since the driver may never answer.
[[gnu::noinline]] void Process::exit_begins(int status) noexcept {
  // A forked child without CUDA calls inherits the handler. The calls that cudart makes in its
  // own exit handlers are not the program's.
  if (!memory_.is_ours()) turn_off();
  if (!has_records()) return;
  const bool confined = is_confined_unnoticed();
  if (!confined && !memory_.belongs_to_caller()) return;
  if (confined) return session_->process_is_ending();
  const ErrnoGuard keep;
  hooks::forget_left_driver_call(__builtin_frame_address(0));
  const Uncancelled whole;
  const WaitBudget::Scope bounded(&end_budget_);
  session_->process_is_ending();
  end_turn_.leads_the_end();
  const void* const frame = __builtin_frame_address(0);
  const hooks::OwnWork own(frame);
  find_lost(status, frame);
  if (begins_with_report_.load() || report_at_exit(status, false)) {
    take_exit_readings(*session_, __builtin_frame_address(0), end_budget_);
    // Names are looked up before the program's destructors run: other threads and signal
    // handlers still use objects that the destructors are about to destroy.
    report_at_exit(status, true);
  }
}

// A report is written first, because the driver may never answer.
void Process::find_lost(int status, const void* frame) noexcept {
  if (lost_are_found_.exchange(true)) return;
  if (!report_at_exit(status, false)) {
    lost_are_found_.store(false);
    return;
  }
  begins_with_report_.store(true);
  // The search is work of the end: another thread that calls exit() waits for it.
  if (!end_turn_.take(false)) return;
  const bool may_ask = may_ask_driver(*session_, frame, end_budget_);
  call_with_room(session_->sites, [&] { find_lost_allocations(*session_, frame, may_ask); });
  end_turn_.give_back(false);
}

// The builtin stores the registers of the caller in this function's frame. The process goes on
// afterwards. So this search waits on a budget of its own, and leaves that of the process's end
// untouched.
[[gnu::noinline]] void Process::interpreter_ends() noexcept {
  __builtin_unwind_init();
  hooks::Session* const session = get().session_if_recording();
  if (session == nullptr || is_confined_unnoticed()) return;
  const ErrnoGuard keep;
  const Uncancelled whole;
  const void* const frame = __builtin_frame_address(0);
  const hooks::OwnWork own(frame);
  constexpr std::uint64_t longest_wait_ns = 100'000'000;
  WaitBudget budget{longest_wait_ns};
  const WaitBudget::Scope bounded(&budget);
  const bool may_ask = may_ask_driver(*session, frame, budget);
  call_with_room(session->sites, [&] { find_lost_in_interpreter(*session, frame, may_ask); });
}

bool Process::report_at_exit(int status, bool with_names) noexcept {
  if (!end_turn_.take(false)) return false;
  ledger_->set_end(ledger::EndReason::exit, status, true);
  complete_ledger();
  call_with_room(session_->sites, [&] { write_report_at_exit(*ledger_, with_names); });
  // The program goes on, so a fatal signal may still come before the last report.
  ledger_->set_end(ledger::EndReason::running, 0, false);
  end_turn_.give_back(false);
  return true;
}

void Process::freed_at_end(Space space, std::uint64_t address) noexcept {
  if (!has_records()) return;
  session_->allocations.settle(session_->allocations.take(space, address),
                               CUDA_ERROR_DEINITIALIZED);
  ledger_->file.header().recorded_calls.fetch_add(1, std::memory_order_relaxed);
}

void Process::finish(ledger::EndReason reason, int status, bool status_known,
                     Afterwards afterwards) noexcept {
  const ErrnoGuard keep;
  if (!is_confined()) hooks::forget_left_driver_call(__builtin_frame_address(0));
  const Uncancelled whole;
  if (state_.load(std::memory_order_acquire) == State::fresh) {
    // The process made no CUDA call that a hook saw. A forked child does not mention drivers in
    // other namespaces.
    if ((!dlmopen_was_called() && !is_debug_wanted()) || is_confined()) return;
    if (!enabled() || !memory_.is_ours() || !memory_.belongs_to_caller()) return;
    call_on_own_stack_if_small([](void*) { Process::get().end_unrecorded(); }, nullptr);
  }
  if (!has_records()) return;
  if (is_confined_unnoticed()) {
    // The end of a vforked child is not the end of the process.
    if (may_confined_ask_process() && !memory_.belongs_to_caller()) return;
    return leave_end(reason, status, status_known);
  }
  if (!memory_.belongs_to_caller()) {
    // A child that shares the memory may end long before the recorded process, which goes on
    // recording. A child that runs the exit handlers has used them up for both, so its end
    // counts.
    if (reason != ledger::EndReason::exit && reason != ledger::EndReason::quick_exit) return;
    afterwards = Afterwards::may_return;
  }
  const bool returns = reason == ledger::EndReason::abort && afterwards == Afterwards::may_return;
  if (returns && has_reported_enough()) return leave_end(reason, status, status_known);
  if (reason == ledger::EndReason::exit) end_turn_.leads_the_end();
  const hooks::OwnWork own(__builtin_frame_address(0));
  const WaitBudget::Scope bounded(&end_budget_);
  if (reason == ledger::EndReason::underscore_exit || reason == ledger::EndReason::quick_exit)
    find_lost(status, __builtin_frame_address(0));
  if (!end_turn_.take(true)) return;
  const std::uint64_t begin_ns = now_ns();
  ledger_->set_end(reason, status, status_known);
  bool written = false;
  call_with_room(session_->sites, [&] { written = write_report(); });
  if (written && afterwards == Afterwards::may_return) {
    ledger_->file.header().report_written.store(1, std::memory_order_relaxed);
    State recording = State::recording;
    state_.compare_exchange_strong(recording, State::ended);
  } else if (written) {
    ledger_->file.remove();
  }
  if (returns) reports_of_aborts_ns_.fetch_add(now_ns() - begin_ns, std::memory_order_relaxed);
  end_turn_.give_back(afterwards == Afterwards::ends);
}

// A handler of SIGABRT may itself call abort(), or jump out of it, any number of times.
bool Process::has_reported_enough() const noexcept {
  constexpr std::uint64_t longest_ns = 1'000'000'000;
  const bool nothing_is_new = state_.load(std::memory_order_acquire) == State::ended &&
                              ledger_->file.header().report_written.load() != 0;
  return nothing_is_new || reports_of_aborts_ns_.load(std::memory_order_relaxed) > longest_ns;
}

// Notes the end without a system call: another process makes the report from the ledger. If the
// filter forbids to ask for the pid, the end of a vforked child is noted, too. A later CUDA call of
// the process takes that back.
void Process::leave_end(ledger::EndReason reason, int status, bool status_known) noexcept {
  ledger_->set_end(reason, status, status_known);
  State recording = State::recording;
  state_.compare_exchange_strong(recording, State::ended);
}

bool Process::may_wait_at_end() const noexcept {
  return has_records() && !is_confined() && memory_.belongs_to_caller();
}

bool Process::another_leads_the_end() const noexcept {
  return may_wait_at_end() && end_turn_.another_leads_the_end();
}

// Searches for pointers before the program's destructors run, which free what holds them. The
// builtin stores the registers of the caller in this function's frame.
[[gnu::noinline]] void Process::exit_is_called(int status) noexcept {
  __builtin_unwind_init();
  if (!may_wait_at_end()) return;
  const ErrnoGuard keep;
  const Uncancelled whole;
  end_turn_.enter_exit();
  end_turn_.wait_for_leader();
  if (is_confined_unnoticed()) return;
  end_turn_.leads_the_end();
  const void* const frame = __builtin_frame_address(0);
  hooks::forget_left_driver_call(frame);
  const WaitBudget::Scope bounded(&end_budget_);
  const hooks::OwnWork own(frame);
  find_lost(status, frame);
}

void Process::quick_exit_is_called(std::atomic<std::uint32_t>& done) noexcept {
  if (may_wait_at_end() && !end_turn_.is_first_in_quick_exit()) wait_for_end(done);
}

void Process::leave_end_to_leader() noexcept {
  if (!another_leads_the_end()) return;
  const ErrnoGuard keep;
  const Uncancelled whole;
  end_turn_.wait_for_leader();
}

void Process::has_ended() noexcept {
  if (!may_wait_at_end()) return;
  if (ledger_->file.header().report_written.load(std::memory_order_relaxed) != 0)
    ledger_->file.remove();
}

// Returns true if there is a report, with symbols or without.
bool Process::write_report() noexcept {
  complete_ledger();
  tell_of_failures();
  const bool is_written = write_final_report(*ledger_);
  leaks_remain_ = status_of_leaks_ != 0 && leaks_at_end(*ledger_) != 0;
  if (leaks_remain_)
    log_warn(formatted("leaks remain: exit status {} takes the place of 0 (CUWARDEN_EXITCODE)",
                       status_of_leaks_));
  if (!is_written) return false;
  tell(told_of_report());
  return true;
}

void Process::complete_ledger() noexcept {
  if (dlmopen_was_called()) note_unseen_driver();
  ledger_->set_versions(0, runtime_version());
}

void Process::note_unseen_driver() noexcept {
  if (is_driver_out_of_sight() && session() != nullptr)
    ledger_->file.add_reason(ledger::reason_driver_out_of_sight);
}

}  // namespace cuwarden::shim
