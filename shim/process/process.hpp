// The life of the process that the shim lives in: started by the first CUDA call, restarted in a
// forked child by its own first CUDA call, finished by whatever ends the process. The one object
// that is never destroyed.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/wait_budget.hpp"
#include "runtime_hooks/hooks/call/session.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"
#include "shim/process/end_turn.hpp"
#include "shim/support/address_space.hpp"
#include "shim/support/settings.hpp"

namespace cuwarden::shim {

// Nothing is recorded in this process, and nothing will be: calls only go through.
extern constinit std::atomic<bool> passes_through;

class Process final : public tracking::CompletenessListener {
 public:
  static Process& get() noexcept;

  // For a hooked call: what to record with, or null where calls only go through. Starts recording
  // at the first call.
  hooks::Session* session() noexcept {
    if (state_.load(std::memory_order_acquire) == State::recording && memory_.is_ours())
      return session_;
    return start();
  }

  // CUWARDEN_ENABLED, readable before the first CUDA call.
  bool enabled() noexcept;
  bool drops_deepbind() noexcept;

  // The program was given a memory function that has no hook. Does not start recording, for a
  // look-up is no call; the first call then tells the ledger.
  void looked_up_unhooked(const char* name) noexcept;

  // By the constructor.
  void loaded() noexcept;
  // Pid of the process that the memory belongs to; the caller's own in a forked child that has made
  // no CUDA call.
  int owner() const noexcept;
  // After a dlclose.
  void modules_changed() noexcept;
  // After the first cuInit that succeeded: from then on the driver has exit handlers.
  void driver_initialised() noexcept;
  // In the exit handler that runs before those: the last moment at which the driver answers.
  void exit_begins(int status) noexcept;
  // The program freed something that cudart no longer passes to the driver.
  void freed_at_end(Space, std::uint64_t address) noexcept;

  // Says if the process surely ends after the report. If it may go on, the ledger stays until it
  // has ended.
  enum class Afterwards { ends, may_return };
  // Writes the report, or waits for the thread that writes it. Returns when it is on disk, or at
  // once where there is nothing to report: no CUDA call, a forked child, an end that is written
  // already, or by this thread at this moment. A process that shares the memory of another (vfork)
  // writes a report only where it takes the exit handlers that were the other's, too.
  void finish(ledger::EndReason, int status, bool status_known,
              Afterwards = Afterwards::ends) noexcept;
  // To be called when an end that might not have come has come after all.
  void has_ended() noexcept;
  // For an exit handler that another thread's exit() calls: returns once `done` is nonzero, at the
  // latest when the thread that writes the report is stuck. Returns at once without records.
  void wait_for_end(std::atomic<std::uint32_t>& done) noexcept;

  // True if another thread has begun to end the process by exit() and has not ended itself.
  bool another_leads_the_end() const noexcept;
  // For a thread that calls exit(), before libc's own function.
  void exit_is_called() noexcept;
  // For a thread that calls quick_exit(), before libc's own function: if another thread has called
  // it first, it returns once `done` is nonzero, as wait_for_end() does.
  void quick_exit_is_called(std::atomic<std::uint32_t>& done) noexcept;
  // For a thread that is about to run exit handlers: does not return where another thread has begun
  // to end the process by exit(), unless that thread is stuck.
  void leave_end_to_leader() noexcept;

  // True if this process is recorded, or was until its end was written. Makes no system call.
  bool has_records() const noexcept {
    const State state = state_.load(std::memory_order_acquire);
    return (state == State::recording || state == State::ended || state == State::stopped) &&
           memory_.is_ours();
  }
  // Null without records. The second function also tells a vforked child, which shares this memory.
  ledger::Writer* ledger() const noexcept { return has_records() ? ledger_ : nullptr; }
  ledger::Writer* ledger_of_this_process() const noexcept;
  // The calling thread's row in the ledger; 0: it has none. Only with records.
  std::uint64_t thread_row() const noexcept;

 private:
  // ended: the report of an end is written that may not come; a later call goes on recording.
  // stopped: an internal failure; calls go through, and what was recorded before is reported.
  enum class State : std::uint32_t { fresh, starting, recording, ended, stopped, off };

  hooks::Session* start() noexcept;
  hooks::Session* start_recording() noexcept;
  void turn_off() noexcept;
  void begin_anew() noexcept;
  // False in a confined thread, where every system call may be the last, and in a vforked child.
  bool may_wait_at_end() const noexcept;
  void leave_end(ledger::EndReason, int status, bool status_known) noexcept;
  void ledger_is_incomplete(ledger::Reason) noexcept override;
  void end_unrecorded() noexcept;
  bool write_report() noexcept;
  // Tells `cuwarden run` the path of a ledger or a report.
  static void tell(std::string_view path) noexcept;
  void note_unseen_driver() noexcept;

  std::atomic<State> state_{State::fresh};
  hooks::Session* session_ = nullptr;
  ledger::Writer* ledger_ = nullptr;
  AddressSpace memory_;
  std::atomic<int> enabled_{-1};
  std::atomic<bool> exit_handler_set_{false};
  EndTurn end_turn_;
  // For our own locks, the driver and NVML, in all. The time for names is another
  // (CUWARDEN_SYMBOL_TIME).
  static constexpr std::uint64_t longest_waiting_at_end_ns = 500'000'000;
  WaitBudget end_budget_{longest_waiting_at_end_ns};
};

}  // namespace cuwarden::shim
