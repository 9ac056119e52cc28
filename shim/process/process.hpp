// The recording of the process that the shim is preloaded into, from start to end. The first CUDA
// call starts it, or a seccomp filter that the program installs before; in a forked child, the
// child's own first CUDA call starts it anew. It ends with the process: by exit(), _exit(),
// quick_exit() or abort().
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "reporters/words/setting_values.hpp"
#include "runtime_hooks/core/wait_budget.hpp"
#include "runtime_hooks/hooks/call/session.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"
#include "shim/support/memory_owner.hpp"
#include "shim/support/settings.hpp"
#include "shim/turns/end_turn.hpp"

namespace cuwarden::shim {

// True once it is certain that this process records nothing: recording is turned off or could not
// start, or the process is a forked child that ends without a CUDA call of its own. Then the hooks
// only pass calls on to the driver.
extern constinit std::atomic<bool> passes_through;

// Owns what is recorded of this process: the session (the state of the hooks), the ledger (the file
// with the allocation records) and the last report. Any thread may call the functions.
class Process final : public tracking::CompletenessListener {
 public:
  // Returns the one object of this process, which is never destroyed.
  static Process& get() noexcept;

  // Returns the session, the state by which a hook records its call; it stays valid while the
  // process runs. Null if the hook must only pass the call on to the driver, unrecorded. The first
  // call starts recording, also in a forked child. A call after the last report resumes it. Waits
  // up to ten seconds while another thread starts recording.
  hooks::Session* session() noexcept {
    if (state_.load(std::memory_order_acquire) == State::recording && memory_.is_ours())
      return session_;
    return start();
  }

  // Returns the session if calls are being recorded; null otherwise, also before the first CUDA
  // call of this process. Starts and resumes nothing.
  hooks::Session* session_if_recording() noexcept {
    const bool records =
        state_.load(std::memory_order_acquire) == State::recording && memory_.is_ours();
    return records ? session_ : nullptr;
  }
  // True if CUWARDEN_ENABLED allows recording. False also in a program that runs with more rights
  // than its caller (setuid). Can be called before the first CUDA call.
  bool enabled() noexcept;
  // True if RTLD_DEEPBIND must be removed from the flags of dlopen: recording is enabled, and
  // CUWARDEN_DEEPBIND is not `keep`. Can be called before the first CUDA call.
  bool drops_deepbind() noexcept;

  // Counts, for a warning in the report, that a lookup (dlsym, cuGetProcAddress) gave the program a
  // memory function of the driver that has no hook. `name`: the function's name, which is copied.
  // Does not start recording: until the first CUDA call the name is kept in a list outside the
  // ledger.
  void looked_up_unhooked(const char* name) noexcept;

  // If recording is enabled, marks this process as the owner of its memory, so that a forked child
  // can be told from its parent. To be called by the shim's constructor.
  void loaded() noexcept;
  // Returns the pid of the process that the calling process's memory belongs to. This is the
  // caller's own pid, except in a child of vfork, which shares its parent's memory and gets the
  // parent's pid.
  int owner() const noexcept;
  // Forgets cached facts about code (unwind rules, names, stacks), since a library was unloaded and
  // another may be mapped at its addresses. To be called after a dlclose that unloaded a library.
  void modules_changed() noexcept;
  // Registers exit handlers by expect_exit(), one of which calls exit_begins(). libc runs them
  // before the driver's own exit handlers. To be called after each cuInit that succeeds; only the
  // first call registers handlers.
  void driver_initialised() noexcept;
  // Writes a report, reads how much memory of each device is free for the last time, and writes the
  // report again with names of functions. Searches for lost allocations before, unless
  // exit_is_called() has done so. Also makes the calling thread the leader: the thread that runs
  // exit() to its end. In a thread that a seccomp filter confines, writes and reads nothing. Does
  // nothing if nothing was recorded, or in a child of vfork; in a forked child without CUDA calls,
  // turns recording off. To be called once in exit(), by an exit handler that libc runs before the
  // driver's, since the driver does not answer later. `status`: the process's exit status, 0 to
  // 255.
  void exit_begins(int status) noexcept;
  // Records that the program freed an allocation. `address`: the allocation's address or handle, of
  // the kind that `Space` says. Does nothing if has_records() is false. To be called for a free of
  // the runtime (such as cudaFree) that fails without reaching the driver, because the process is
  // ending.
  void freed_at_end(Space, std::uint64_t address) noexcept;

  // Says if the process can go on after finish() has written its last report. ends: the process
  // certainly ends, so finish() removes the ledger's file once the report is on disk. may_return:
  // the process may go on, for example if a SIGABRT handler jumps out of abort(); the ledger's file
  // stays until has_ended() is called.
  enum class Afterwards { ends, may_return };
  // Writes the process's last report, or waits for another thread that writes it. `EndReason`: the
  // way in which the process ends. `status`: exit status, 0 to 255; meaningless unless
  // `status_known`. `Afterwards`: says if the process can go on afterwards; with `ends`, the
  // ledger's file is removed once the report is on disk.
  //
  // Returns at once if there is nothing to report: no CUDA call was recorded in this process, the
  // last report is already written, or the calling thread was interrupted while it writes the last
  // report. Without a recorded CUDA call, first writes debug lines if CUWARDEN_LOG asks for them.
  // If the program has called dlmopen and a libcuda is loaded in another linker namespace,
  // recording begins, so that a report says so. For _exit() and quick_exit(), searches for lost
  // allocations before the report. A thread that a seccomp filter confines writes no report, and
  // only stores in the ledger how the process ends. So does an abort() that needs no further report
  // (has_reported_enough()). A child that shares its parent's memory (vfork) writes a report only
  // if it runs the exit handlers, since the parent cannot run them again.
  void finish(ledger::EndReason, int status, bool status_known,
              Afterwards = Afterwards::ends) noexcept;
  // Returns the exit status with which the process should end: that of CUWARDEN_EXITCODE if
  // `status`, the program's, is 0 and finish() has found leaks; otherwise `status`.
  int status_at_end(int status) const noexcept {
    return status == 0 && leaks_remain_ && memory_.belongs_to_caller() ? status_of_leaks_ : status;
  }
  // Removes the ledger's file if the last report is on disk; otherwise keeps it. To be called when
  // it is certain that the process ends, after finish() was called with Afterwards::may_return.
  // Does nothing if nothing was recorded, in a child of vfork, and in a thread that a seccomp
  // filter confines.
  void has_ended() noexcept;
  // Waits until `done` is nonzero, which another thread sets when its exit handler has written a
  // report. Stops waiting if that thread has ended or is stuck (EndTurn::wait_until()). Returns at
  // once if nothing was recorded, in a child of vfork, or if a seccomp filter that the program has
  // installed confines the calling thread. To be called by exit handlers of threads that do not
  // write the report.
  void wait_for_end(std::atomic<std::uint32_t>& done) noexcept;

  // True if another thread is ending the process by exit() and has not ended itself, so that the
  // calling thread should wait for it. False if the calling thread must not wait: nothing was
  // recorded, it is in a child of vfork, or a seccomp filter confines it.
  bool another_leads_the_end() const noexcept;
  // Lets one thread, the leader, run exit() to its end. The first thread that calls becomes the
  // leader, writes a report, and searches for allocations to which no pointer is left. A later
  // thread waits 50 ms at most until there is a leader. Then it waits until the leader has ended or
  // is stuck (EndTurn::wait_for_leader()), and becomes the leader if it was the first to notice.
  // Returns at once if the calling thread must not wait (another_leads_the_end()). `status`: exit
  // status, 0 to 255. To be called before libc's exit(): by each thread that calls it, and when
  // main() has returned.
  void exit_is_called(int status) noexcept;
  // If another thread has called quick_exit() before, waits until that thread has written the
  // report and set `done` to nonzero, has ended, or is stuck. Returns at once in the
  // thread that calls first, or if the calling thread must not wait (another_leads_the_end()). To
  // be called by each thread that calls quick_exit(), before libc's own function.
  void quick_exit_is_called(std::atomic<std::uint32_t>& done) noexcept;
  // Leaves the rest of the exit handlers to another thread that is ending the process by exit(): if
  // there is one, returns only once it is stuck or has ended. Returns at once if there is none, or
  // if the calling thread must not wait (another_leads_the_end()). To be called in exit handlers.
  void leave_end_to_leader() noexcept;

  // True if this process has a ledger with records: recording is under way, was stopped by an
  // internal failure, or has ended. False in a forked child before its first CUDA call. Makes no
  // system call.
  bool has_records() const noexcept {
    const State state = state_.load(std::memory_order_acquire);
    return (state == State::recording || state == State::ended || state == State::stopped) &&
           memory_.is_ours();
  }
  // Returns the ledger, the file of allocation records; null if has_records() is false.
  ledger::Writer* ledger() const noexcept { return has_records() ? ledger_ : nullptr; }
  // True if the calling process is a child of vfork, which shares its parent's memory. False also
  // if the memory's owner is not known, as without recording. Makes a system call.
  bool shares_memory_of_another() const noexcept;
  // True if session() may be called now to start recording, without a CUDA call: recording is
  // enabled and has not been started yet, and the process is not a forked child that still has to
  // begin its own recording.
  bool may_begin() noexcept;
  // Returns the number of the calling thread's row in the ledger's table of threads, 1 or more; 0
  // if the thread has none yet. To be called only if has_records() is true.
  std::uint64_t thread_row() const noexcept;

 private:
  // State of the recording in this process. fresh: no CUDA call yet. starting: a thread prepares
  // recording, and others wait for it. recording: calls are recorded. ended: the last report is
  // written or left to another process; if the process goes on after all, the next CUDA call
  // resumes recording. stopped: an internal failure; later calls are not recorded, but the report
  // shows the earlier ones. off: nothing is recorded in this process.
  enum class State : std::uint32_t { fresh, starting, recording, ended, stopped, off };

  // Starts recording or resumes it, or waits for another thread that starts it; then returns the
  // session. Returns null if the caller's CUDA call is not to be recorded.
  hooks::Session* start() noexcept;
  // Reads the settings, makes the ledger and the session, and returns the session. Returns null if
  // that fails, after a warning in the log.
  hooks::Session* start_recording() noexcept;
  // Waits while another thread starts recording. Returns true once that start has ended, with or
  // without success. Returns false after ten seconds, or at once if a thread has waited that long
  // in vain before; then the caller's CUDA call is not recorded.
  bool wait_for_start() noexcept;
  // Writes a report inside exit(). `status`: exit status, 0 to 255. While the report is written,
  // the ledger says that the process has ended with `status`; afterwards, that it runs.
  // `with_names`: true if the report has names of functions and source lines. Returns false, with
  // nothing written, if the last report is already written, another thread is stuck in writing one,
  // or the calling thread has interrupted its own writing. Otherwise returns true, even if the
  // report could not be written or none is wanted. To be called inside an OwnWork (a scope of
  // cuwarden's own work).
  bool report_at_exit(int status, bool with_names) noexcept;
  // Searches for pointers to the live allocations, and stores in the ledger which are lost; only
  // the first call does so. Writes a report before it, and sets begins_with_report_. `status`: exit
  // status, 0 to 255. `frame`: __builtin_frame_address(0) of the calling function; the stack above
  // it is the program's. To be called inside an OwnWork (a scope of cuwarden's own work).
  void find_lost(int status, const void* frame) noexcept;
  // Searches for pointers before the Python interpreter of the process frees its objects, as
  // find_lost() does at the end. Does nothing if nothing is recorded now, or in a thread that a
  // seccomp filter confines. Called in the interpreter's main thread, when it is about to end.
  static void interpreter_ends() noexcept;
  // True if an abort() needs no further report. Asked only if a SIGABRT handler may leave that call
  // by a jump. True if an earlier report contains all that was recorded, or if reports of such
  // calls have taken more than one second in all. The caller then only stores the end in the
  // ledger.
  bool has_reported_enough() const noexcept;
  // Makes all later hooked calls go on to the driver unrecorded, for as long as the process runs.
  void turn_off() noexcept;
  // Forgets, in a forked child, the parent's recording and its threads, so that the child's own
  // recording can start. If recording was off in the parent, it stays off.
  void begin_anew() noexcept;
  // True if the calling thread may wait for another thread that ends the process. False if nothing
  // is recorded, in a child of vfork, and in a thread that a seccomp filter of the program
  // confines: the filter may forbid system calls of cuwarden's.
  bool may_wait_at_end() const noexcept;
  // Stores in the ledger how the process ends, so that `cuwarden run` or `cuwarden recover` can
  // make the report from the ledger. Recording counts as ended; a later CUDA call resumes it.
  // `status`: exit status, 0 to 255; meaningless unless `status_known`. Makes no system call.
  void leave_end(ledger::EndReason, int status, bool status_known) noexcept;
  // Warns the user that the ledger lacks some allocations; called when an allocation could not be
  // recorded. `Reason`: why records are missing. With reason_recording_stopped, also stops
  // recording, so that later calls are not recorded. In a thread that a seccomp filter confines,
  // writes no warning.
  void ledger_is_incomplete(ledger::Reason) noexcept override;
  // Called at the end of a process without a recorded CUDA call. If the program has called dlmopen
  // and a libcuda is loaded in another linker namespace, starts recording. Then adds to the ledger
  // that calls of such a libcuda are not recorded (reason_driver_out_of_sight). If recording does
  // not start, and CUWARDEN_LOG asks for debug lines, one says why nothing was recorded.
  void end_unrecorded() noexcept;
  // Writes the last report, and tells its path to `cuwarden run`. Returns true if the report is on
  // disk or CUWARDEN_REPORT_IF asks for none; false if it could not be written. To be called inside
  // an OwnWork (a scope of cuwarden's own work).
  bool write_report() noexcept;
  // Tells `cuwarden run` the path of a ledger or a report, by an entry in the file
  // Settings::report_list. `path` may also be the text no_report_wanted. Does nothing if `path` is
  // empty, or if the process was not started by `cuwarden run`.
  static void tell(std::string_view path) noexcept;
  // Adds facts to the ledger just before a report: the version of the CUDA runtime, and a reason
  // for missing records if a libcuda is loaded in another linker namespace (dlmopen).
  void complete_ledger() noexcept;
  // Writes the lines to the user about failed requests that an allocator should have repeated, but
  // did not (IncidentExplanations::end()).
  static void tell_of_failures() noexcept;
  // If a libcuda is loaded in another linker namespace, stores that in the ledger as a reason why
  // records are missing. If there is no ledger yet, starts recording first.
  void note_unseen_driver() noexcept;

  std::atomic<State> state_{State::fresh};  // the state of the recording
  // The session, by which hooks record their calls; null before recording starts. In a forked
  // child, the parent's until the child's own recording starts.
  hooks::Session* session_ = nullptr;
  // The ledger, the file with the allocation records; null before recording starts.
  ledger::Writer* ledger_ = nullptr;
  // Tells a forked child, and a child of vfork, from the process that owns the memory.
  MemoryOwner memory_;
  std::atomic<int> enabled_{-1};  // result of enabled(): 0 or 1; -1: not yet known
  // True once driver_initialised() has registered the exit handlers.
  std::atomic<bool> exit_handler_set_{false};
  // True once a thread has waited ten seconds in vain for another thread to start the recording.
  std::atomic<bool> start_is_slow_{false};
  // Nanoseconds that writing reports has taken in all, for calls of abort() that a signal handler
  // could leave by a jump.
  std::atomic<std::uint64_t> reports_of_aborts_ns_{0};
  // Decides which thread writes a report at the end of the process, and which one runs exit() to
  // its end.
  EndTurn end_turn_;
  // Longest time in all, in nanoseconds, for which threads that end the process wait for cuwarden's
  // locks, the driver and NVML. The time to name functions in the report (CUWARDEN_SYMBOL_TIME) is
  // not part of it.
  static constexpr std::uint64_t longest_waiting_at_end_ns = 500'000'000;
  // Time for which threads that end the process may still wait for locks, the driver and NVML; at
  // first longest_waiting_at_end_ns.
  WaitBudget end_budget_{longest_waiting_at_end_ns};
  // True once find_lost() has begun its search for pointers. False again if the report before that
  // search could not be begun, and when recording is resumed.
  std::atomic<bool> lost_are_found_{false};
  // True once find_lost() has written a report, so that exit_begins() need not begin with one.
  std::atomic<bool> begins_with_report_{false};
  // Exit status of a process that has leaks (CUWARDEN_EXITCODE), 1 to 255; 0: leaks do not change
  // the program's exit status.
  int status_of_leaks_ = 0;
  // True if leaks were found at the end of the process. They are looked for only if
  // status_of_leaks_ is not 0.
  bool leaks_remain_ = false;
};

}  // namespace cuwarden::shim
