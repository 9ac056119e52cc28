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

// True if nothing is recorded in this process, and nothing will be: hooked calls only go through to
// the driver.
extern constinit std::atomic<bool> passes_through;

// The recorded process: its session, ledger and end. All functions may be called by any thread.
class Process final : public tracking::CompletenessListener {
 public:
  // Returns the one object, which is never destroyed.
  static Process& get() noexcept;

  // Returns the session that a hooked call records with; null if calls only go through. The first
  // call starts recording.
  hooks::Session* session() noexcept {
    if (state_.load(std::memory_order_acquire) == State::recording && memory_.is_ours())
      return session_;
    return start();
  }

  // Return the settings CUWARDEN_ENABLED and CUWARDEN_DEEPBIND (true for `drop`). They can be
  // called before the first CUDA call.
  bool enabled() noexcept;
  bool drops_deepbind() noexcept;

  // Notes that a lookup gave the program a memory function that has no hook. A lookup is no call,
  // so it does not start recording: the first call tells the ledger.
  void looked_up_unhooked(const char* name) noexcept;

  // Begins the object's life; to be called by the shim's constructor.
  void loaded() noexcept;
  // Returns the pid of the process that the memory belongs to; in a forked child that has made no
  // CUDA call, the caller's own pid. A vforked child gets its parent's pid.
  int owner() const noexcept;
  // Notes that modules may have been unloaded; to be called after each dlclose.
  void modules_changed() noexcept;
  // Registers the shim's exit handler before the driver's; to be called after the first cuInit that
  // succeeded.
  void driver_initialised() noexcept;
  // Writes a report, then reads the devices for the last time. To be called in the exit handler
  // that runs before the driver's: the last moment at which the driver answers. `status`: the
  // process's exit status.
  void exit_begins(int status) noexcept;
  // Records a free that cudart does not pass to the driver any more, because the process is ending.
  void freed_at_end(Space, std::uint64_t address) noexcept;

  // Says if the process certainly ends after the report, or may go on. If it may go on, the
  // ledger's file stays until has_ended().
  enum class Afterwards { ends, may_return };
  // Writes the process's last report, or waits for the thread that writes it. `status`: exit status
  // or signal, meaningless unless `status_known`. Returns at once if there is nothing to report: no
  // CUDA call, a forked child, the last report is written already, or the calling thread is writing
  // it. A child that shares the memory of its parent (vfork) writes a report only if it runs the
  // exit handlers, which are then used up for the parent, too.
  void finish(ledger::EndReason, int status, bool status_known,
              Afterwards = Afterwards::ends) noexcept;
  // Removes the ledger's file. To be called if the process really ends after finish(…,
  // Afterwards::may_return).
  void has_ended() noexcept;
  // Waits until `done` is nonzero, or until the thread that writes the report is stuck. Returns at
  // once if there are no records. For an exit handler that does not write the report itself.
  void wait_for_end(std::atomic<std::uint32_t>& done) noexcept;

  // True if another thread is ending the process by exit(), and still runs.
  bool another_leads_the_end() const noexcept;
  // To be called by each thread that calls exit(), before libc's own function.
  void exit_is_called() noexcept;
  // To be called by each thread that calls quick_exit(), before libc's own function. If another
  // thread has called it first, waits as wait_for_end() does.
  void quick_exit_is_called(std::atomic<std::uint32_t>& done) noexcept;
  // To be called by a thread that is about to run exit handlers. If another thread is ending the
  // process by exit(), waits for it and does not return, unless that thread is stuck.
  void leave_end_to_leader() noexcept;

  // True if this process is recorded, or was until its end was written. Makes no system call.
  bool has_records() const noexcept {
    const State state = state_.load(std::memory_order_acquire);
    return (state == State::recording || state == State::ended || state == State::stopped) &&
           memory_.is_ours();
  }
  // Returns the ledger; null without records.
  ledger::Writer* ledger() const noexcept { return has_records() ? ledger_ : nullptr; }
  // Returns true in a child of vfork, which has the memory of its parent; that takes a system call.
  bool shares_memory_of_another() const noexcept;
  // Returns true in a process that is not forked, is to be recorded, and has made no CUDA call.
  bool may_begin() noexcept;
  // Returns the number of the calling thread's row in the ledger; 0 if it has none. To be called
  // only if has_records() is true.
  std::uint64_t thread_row() const noexcept;

 private:
  // ended: the report of an end is written that may not come; a later call goes on recording.
  // stopped: an internal failure; calls go through, and what was recorded before is reported.
  enum class State : std::uint32_t { fresh, starting, recording, ended, stopped, off };

  hooks::Session* start() noexcept;
  hooks::Session* start_recording() noexcept;
  bool wait_for_start() noexcept;
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
  // True once a thread has waited in vain for another one to start the recording.
  std::atomic<bool> start_is_slow_{false};
  EndTurn end_turn_;
  // For our own locks, the driver and NVML, in all. The time for names is another
  // (CUWARDEN_SYMBOL_TIME).
  static constexpr std::uint64_t longest_waiting_at_end_ns = 500'000'000;
  WaitBudget end_budget_{longest_waiting_at_end_ns};
};

}  // namespace cuwarden::shim
