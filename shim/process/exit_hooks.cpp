// The ways a process ends, each with its report. The constructor does little: it registers the
// handlers that libc runs last, after the static destructors of the program and its libraries.
// (A preloaded object is initialised before the program registers anything.)
#include "shim/process/exit_hooks.hpp"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/futex_wait.hpp"
#include "shim/process/process.hpp"
#include "shim/process/seccomp_watch.hpp"
#include "shim/support/loaded_objects.hpp"
#include "shim/support/message_output.hpp"
#include "shim/support/ready_unwinder.hpp"
#include "shim/support/real_libc.hpp"
#include "shim/support/start_environment.hpp"

// libc's function; at_quick_exit calls it.
extern "C" int __cxa_at_quick_exit(void (*handler)(void*), void* object) noexcept;

namespace cuwarden::shim {
namespace {

// If several threads call exit(), glibc before 2.41 gives each handler to one of them. It frees the
// list of handlers although a thread may still be inside one. It ends the process as soon as a
// thread finds no handler left. Without the shim this is rarely noticed, because handlers are fast.
// Writing a report takes longer. So the first thread to reach the shim's handlers leads, and each
// other thread stays in a handler that waits. The handlers that wait lie below those that work.
// There must be one for each thread that may arrive before the first of them has registered its
// handler anew.
constexpr int waiting_handlers = 4;

struct Handlers {
  std::atomic<std::uint32_t> done{0};  // 1: the handler that works has returned
  void set_done() noexcept {
    done.store(1, std::memory_order_release);
    // Waiting threads also wake up now and then, and look.
    if (!is_confined()) futex_wake_all(done);
  }
  // Waits until the work is done. `again` registers the calling handler anew, for the next
  // thread.
  template <class Again>
  void wait(const Again& again) noexcept {
    if (done.load(std::memory_order_acquire) != 0) return;
    again();
    Process::get().wait_for_end(done);
    set_done();
  }
};
constinit Handlers exit_begins_handlers, at_exit_handlers, at_quick_exit_handlers;

void exit_begins(int status, void*) {
  Process::get().exit_begins(status & 0xff);
  exit_begins_handlers.set_done();
}
void wait_for_exit_begins(int, void*) {
  exit_begins_handlers.wait([] { on_exit(wait_for_exit_begins, nullptr); });
  Process::get().leave_end_to_leader();
}

void at_exit(int status, void*) {
  // Registers handlers for the leader. They also tell libc that its list has changed, so that the
  // leader reads it anew instead of a part that this thread has freed.
  if (Process::get().another_leads_the_end()) {
    on_exit(at_exit, nullptr);
    Process::get().leave_end_to_leader();
  }
  Process::get().finish(ledger::EndReason::exit, status & 0xff, true);
  at_exit_handlers.set_done();
  // Called from an exit handler, libc's exit() runs the handlers that are left and flushes the
  // program's streams.
  const int wanted = Process::get().status_at_end(status & 0xff);
  if (wanted != (status & 0xff)) real_libc().exit(wanted);
}
void wait_at_exit(int, void*) {
  at_exit_handlers.wait([] { on_exit(wait_at_exit, nullptr); });
  Process::get().leave_end_to_leader();
}

// The handlers are registered for no object: an object's handlers are dropped when another thread's
// exit() finalises the object.
void on_quick_exit(void (*handler)(void*)) { __cxa_at_quick_exit(handler, nullptr); }

constinit int quick_exit_status = 0;
constinit bool quick_exit_status_known = false;
// Ends the process if its leaks change the exit status. Each thread that runs the handlers does so,
// because any of them may be the one that ends the process.
void leave_quick_exit_with_status_of_leaks() {
  const int wanted = Process::get().status_at_end(quick_exit_status);
  if (quick_exit_status_known && wanted != quick_exit_status) real_libc()._exit(wanted);
}
void at_quick_exit_end(void*) {
  Process::get().finish(ledger::EndReason::quick_exit, quick_exit_status, quick_exit_status_known);
  at_quick_exit_handlers.set_done();
  leave_quick_exit_with_status_of_leaks();
}
void wait_at_quick_exit(void*) {
  at_quick_exit_handlers.wait([] { on_quick_exit(wait_at_quick_exit); });
  leave_quick_exit_with_status_of_leaks();
}

[[gnu::constructor]] void register_ends() {
  note_startup_objects();
  keep_start_environment();
  // libc's functions are looked up now, because a vforked child or a signal handler that calls
  // _exit must not do so.
  real_libc();
  // Later, a signal handler might interrupt this work, and wait for a thread that waits for it.
  make_unwinder_ready();
  begin_noticing_filters();
  remember_stderr();
  Process::get().loaded();
  keep_walks_and_forks_apart();
  for (int i = 0; i < waiting_handlers; ++i) {
    on_exit(wait_at_exit, nullptr);
    on_quick_exit(wait_at_quick_exit);
  }
  on_exit(at_exit, nullptr);
  on_quick_exit(at_quick_exit_end);
}

// A handler of SIGABRT may leave by longjmp, and the process lives on.
bool abort_may_return() {
  if (is_confined()) return false;  // sigaction is a system call; see Process::leave_end
  struct sigaction present {};
  return sigaction(SIGABRT, nullptr, &present) == 0 && present.sa_handler != SIG_DFL &&
         present.sa_handler != SIG_IGN;
}

void finish_abort(Process::Afterwards afterwards) {
  Process::get().finish(ledger::EndReason::abort, 0, false, afterwards);
}

int (*main_of_program)(int, char**, char**) = nullptr;

// Calls the program's main(). libc calls exit() afterwards, by a call that no export can catch. An
// exception of the program passes through.
int call_main(int count, char** arguments, char** environment) {
  const int status = main_of_program(count, arguments, environment);
  Process::get().exit_is_called(status & 0xff);
  return status;
}

}  // namespace

void expect_exit() noexcept {
  on_exit(wait_for_exit_begins, nullptr);
  on_exit(wait_for_exit_begins, nullptr);
  on_exit(exit_begins, nullptr);
}

}  // namespace cuwarden::shim

extern "C" {

// Has call_main() stand in for the program's main(). The types of the other functions are not
// known: they have changed with glibc's versions.
[[gnu::visibility("default")]] int __libc_start_main(int (*main)(int, char**, char**), int count,
                                                     char** arguments, void (*init)(),
                                                     void (*fini)(), void (*rtld_fini)(),
                                                     void* stack_end);
int __libc_start_main(int (*main)(int, char**, char**), int count, char** arguments, void (*init)(),
                      void (*fini)(), void (*rtld_fini)(), void* stack_end) {
  const bool is_recorded = cuwarden::shim::Process::get().enabled();
  if (is_recorded) cuwarden::shim::main_of_program = main;
  return cuwarden::shim::real_libc().start_main(is_recorded ? cuwarden::shim::call_main : main,
                                                count, arguments, init, fini, rtld_fini, stack_end);
}

// The declarations of the next functions are libc's; none returns.

// Serves threads that arrive when no handler that waits is left. Jumps to libc's own function: an
// exit handler may end its thread, and then no frame of the shim is in the way of the unwinding. (A
// call of a function that is declared not to return would be no jump.)
[[gnu::visibility("default")]] void cuwarden_exit(int status) asm("exit");
void cuwarden_exit(int status) {
  cuwarden::shim::Process::get().exit_is_called(status & 0xff);
  cuwarden::shim::real_libc().exit(status);
}

[[gnu::visibility("default")]] void _exit(int status) {
  cuwarden::shim::Process::get().finish(cuwarden::ledger::EndReason::underscore_exit, status & 0xff,
                                        true);
  cuwarden::shim::real_libc()._exit(cuwarden::shim::Process::get().status_at_end(status & 0xff));
  __builtin_unreachable();
}

[[gnu::visibility("default")]] void _Exit(int status) noexcept {
  cuwarden::shim::Process::get().finish(cuwarden::ledger::EndReason::underscore_exit, status & 0xff,
                                        true);
  cuwarden::shim::real_libc()._Exit(cuwarden::shim::Process::get().status_at_end(status & 0xff));
  __builtin_unreachable();
}

[[gnu::visibility("default")]] void quick_exit(int status) noexcept {
  // Many threads at once may use up libc's handlers before the first one that waits has
  // registered itself anew. The next thread would then end the process.
  cuwarden::shim::Process::get().quick_exit_is_called(cuwarden::shim::at_quick_exit_handlers.done);
  cuwarden::shim::quick_exit_status = status & 0xff;
  cuwarden::shim::quick_exit_status_known = true;
  cuwarden::shim::real_libc().quick_exit(
      cuwarden::shim::Process::get().status_at_end(status & 0xff));
  __builtin_unreachable();
}

[[gnu::visibility("default")]] void abort() noexcept {
  using cuwarden::shim::Process;
  if (cuwarden::shim::abort_may_return()) {
    cuwarden::shim::finish_abort(Process::Afterwards::may_return);
    // libc's abort begins with these steps, too. A handler may leave here by a jump. If it
    // returns instead, the process ends for certain, and libc must not run the handler once
    // more.
    sigset_t aborting;
    sigemptyset(&aborting);
    sigaddset(&aborting, SIGABRT);
    // For this thread; pthread_sigmask is in libc only since glibc 2.32.
    sigprocmask(SIG_UNBLOCK, &aborting, nullptr);
    raise(SIGABRT);
    Process::get().has_ended();
    signal(SIGABRT, SIG_DFL);
  } else {
    cuwarden::shim::finish_abort(Process::Afterwards::ends);
  }
  cuwarden::shim::real_libc().abort();
  __builtin_unreachable();
}

// glibc's assert ends in an abort of its own that no export can catch.
[[gnu::visibility("default")]] void __assert_fail(const char* assertion, const char* file,
                                                  unsigned line, const char* function) noexcept {
  using cuwarden::shim::Process;
  cuwarden::shim::finish_abort(cuwarden::shim::abort_may_return() ? Process::Afterwards::may_return
                                                                  : Process::Afterwards::ends);
  cuwarden::shim::real_libc().assert_fail(assertion, file, line, function);
  __builtin_unreachable();
}

}  // extern "C"
