#include "shim/process/seccomp_watch.hpp"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/memory/readable.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "runtime_hooks/hooks/call/hooked_call.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/allocation_records/threads.hpp"
#include "shim/process/filter_program.hpp"
#include "shim/process/own_system_calls.hpp"
#include "shim/process/process.hpp"
#include "shim/support/loaded_objects.hpp"
#include "shim/support/log.hpp"
#include "shim/support/own_stack.hpp"
#include "shim/support/real_libc.hpp"

// Pointers of seccomp_entry.S to the functions that the program meant to call.
extern "C" {
extern long (*cuwarden_next_syscall)(long, long, long, long, long, long, long);
extern int (*cuwarden_next_prctl)(int, unsigned long, unsigned long, unsigned long, unsigned long);
}

namespace cuwarden::shim {
namespace {

using hooks::Confinement;

// True once a filter was installed for all threads (SECCOMP_FILTER_FLAG_TSYNC).
constinit std::atomic<bool> confines_all{false};
// Number of threads in the ledger when the first filter came: only those threads were there before
// it.
constinit std::atomic<std::uint64_t> threads_before{0};
// True if the mode of seccomp tells if a thread is confined by a filter of the program's. False if
// a filter was there when recording began, or if one came that does not confine.
constinit std::atomic<bool> mode_tells{true};

// True once a filter was found that the program installed without libc. It may be in any thread, or
// in a vforked child, which shares this memory. The question for the mode was harmless then, so
// each thread asks it again.
constinit std::atomic<bool> mode_must_be_asked{false};

// True if all filters of confined threads allow the question. False without such a filter.
constinit std::atomic<bool> may_ask_mode{false}, may_ask_process{false};

// Writes one warning line to the log before the program installs a filter on itself: the report may
// have to be made from the ledger afterwards. `ledger`: path of the ledger's file; empty if the
// ledger is in memory.
void say_of_confinement(std::string_view ledger) noexcept try {
  const std::string where =
      ledger.empty() ? "no report can be made of what the process has recorded"
                     : formatted(
                           "the report is made from the ledger {} by `cuwarden run`, or by "
                           "`cuwarden recover {}`",
                           ledger, ledger.substr(0, ledger.rfind('/')));
  log_warn(
      formatted("the program installs a seccomp filter. A confined thread opens no file for "
                "cuwarden and writes no messages; if one ends the process, {}.",
                where));
} catch (...) {
}  // no memory for the line

Confinement& of_this_thread() { return hooks::call_state.confinement; }

// A thread inherits the filters of the thread that made it. If that thread is not known, and the
// kernel must not be asked, the thread counts as confined.
bool thread_is_confined() noexcept {
  const Confinement known = of_this_thread();
  if (known == Confinement::confined || confines_all.load(std::memory_order_relaxed)) return true;
  if (mode_must_be_asked.load(std::memory_order_relaxed)) {
    const ErrnoGuard keep;
    return prctl(PR_GET_SECCOMP) != 0;
  }
  if (known == Confinement::none) return false;
  const Process& process = Process::get();
  const std::uint64_t row = process.has_records() ? process.thread_row() : 0;
  if (row != 0 && row < threads_before.load(std::memory_order_relaxed)) return false;
  if (!mode_tells.load(std::memory_order_relaxed) || !may_ask_mode.load(std::memory_order_relaxed))
    return true;
  const ErrnoGuard keep;
  const bool is_free = prctl(PR_GET_SECCOMP) == 0;
  of_this_thread() = is_free ? Confinement::none : Confinement::confined;
  return !is_free;
}

enum class Scope { nothing, thread, process };

// A filter that the program asks the kernel to install.
struct Installation {
  Scope scope = Scope::nothing;  // nothing: the call installs no filter, or the kernel refuses it
  const sock_fprog* program = nullptr;  // null in strict mode
};

const sock_fprog* program_at(unsigned long address) noexcept {
  return reinterpret_cast<const sock_fprog*>(address);
}

Installation installed_by_prctl(unsigned long mode, unsigned long address) noexcept {
  if (mode == SECCOMP_MODE_STRICT) return {Scope::thread, nullptr};
  if (mode != SECCOMP_MODE_FILTER || address == 0) return {};
  return {Scope::thread, program_at(address)};
}

// Returns the filter that a call of seccomp() installs. libseccomp calls it with a null filter to
// find out which flags the kernel knows.
Installation installed_by_seccomp(unsigned long operation, unsigned long flags,
                                  unsigned long address) noexcept {
  if (operation == SECCOMP_SET_MODE_STRICT && flags == 0 && address == 0)
    return {Scope::thread, nullptr};
  if (operation != SECCOMP_SET_MODE_FILTER || address == 0) return {};
  return {(flags & SECCOMP_FILTER_FLAG_TSYNC) != 0 ? Scope::process : Scope::thread,
          program_at(address)};
}

// System calls of cuwarden that a filter allows.
struct Allowance {
  bool all = false;      // all of own_system_calls
  bool mode = false;     // asks for the mode of seccomp
  bool process = false;  // asks for the process's pid
  bool probing = false;  // asks if memory can be read
};

Allowance allowance_of(const SeccompFilter& filter) noexcept {
  return {.all = std::ranges::all_of(own_system_calls,
                                     [&](std::uint32_t number) { return filter.allows(number); }),
          .mode = filter.allows(SYS_prctl),
          .process = filter.allows(SYS_getpid) && filter.allows(SYS_kill),
          .probing = filter.allows(SYS_rt_sigprocmask)};
}

// True if CUDA is in use, or soon will be.
bool is_cuda_loaded() noexcept {
  return any_loaded_object([](const LoadedObject& object) {
    return is_library(object.soname(), "libcuda.so") || is_library(object.soname(), "libcudart.so");
  });
}

// The state of threads from before the program's call to after it. The filter holds as soon as the
// call returns, and in other threads perhaps earlier. A filter that allows all that cuwarden asks
// for confines no thread.
class ComingFilter {
 public:
  explicit ComingFilter(const Installation& wanted) noexcept {
    if (wanted.scope == Scope::nothing) return;
    const ErrnoGuard keep;
    const bool was_confined = is_confined();
    Process& process = Process::get();
    // A vforked child shares this memory, but its filter does not confine this process.
    if (!was_confined && process.shares_memory_of_another()) return;
    // A second filter is not looked at: the first one may forbid what that takes.
    if (!was_confined && wanted.program != nullptr) {
      const SeccompFilter filter(wanted.program);
      if (!filter.is_valid()) return;
      allowance_ = allowance_of(filter);
    }
    before_ = kept();
    scope_ = wanted.scope;
    if (allowance_.all) {
      mode_tells.store(false, std::memory_order_relaxed);
      return;
    }
    if (!was_confined) prepare(process);
    note();
  }
  ComingFilter(const ComingFilter&) = delete;
  ComingFilter& operator=(const ComingFilter&) = delete;

  void did_not_come() const noexcept {
    if (scope_ == Scope::nothing) return;
    of_this_thread() = before_.confinement;
    if (scope_ == Scope::process)
      confines_all.store(before_.confines_all, std::memory_order_relaxed);
    mode_tells.store(before_.mode_tells, std::memory_order_relaxed);
    may_ask_mode.store(before_.may_ask_mode, std::memory_order_relaxed);
    may_ask_process.store(before_.may_ask_process, std::memory_order_relaxed);
    cuwarden::detail::confined_may_probe.store(before_.may_probe, std::memory_order_relaxed);
    if (before_.is_first)
      cuwarden::detail::asks_confinement.store(nullptr, std::memory_order_release);
  }

 private:
  struct Kept {
    Confinement confinement;
    bool is_first, confines_all, mode_tells, may_ask_mode, may_ask_process, may_probe;
  };

  static Kept kept() noexcept {
    return {.confinement = of_this_thread(),
            .is_first = cuwarden::detail::asks_confinement.load(relaxed) == nullptr,
            .confines_all = confines_all.load(relaxed),
            .mode_tells = mode_tells.load(relaxed),
            .may_ask_mode = may_ask_mode.load(relaxed),
            .may_ask_process = may_ask_process.load(relaxed),
            .may_probe = cuwarden::detail::confined_may_probe.load(relaxed)};
  }

  // The kernel can be asked for the last time. If recording has not begun, it begins now,
  // provided that the program uses CUDA at all. A forked child may only want to execute another
  // program.
  void prepare(Process& process) const noexcept {
    if (process.may_begin() && is_cuda_loaded()) process.session();
    ledger::Writer* const ledger = process.ledger();
    if (ledger == nullptr) return;
    const Uncancelled whole;
    ledger->file.make_room_ahead();
    if (!before_.is_first) return;
    threads_before.store(ledger->threads.rows(), std::memory_order_relaxed);
    call_on_own_stack_if_small(
        [](void* given) {
          say_of_confinement(static_cast<const ledger::Writer*>(given)->file.path());
        },
        ledger);
  }

  void note() const noexcept {
    may_ask_mode.store(allowance_.mode && (before_.is_first || before_.may_ask_mode), relaxed);
    may_ask_process.store(allowance_.process && (before_.is_first || before_.may_ask_process),
                          relaxed);
    cuwarden::detail::confined_may_probe.store(
        allowance_.probing && (before_.is_first || before_.may_probe), relaxed);
    of_this_thread() = Confinement::confined;
    if (scope_ == Scope::process) confines_all.store(true, relaxed);
    cuwarden::detail::asks_confinement.store(thread_is_confined, std::memory_order_release);
  }

  Scope scope_ = Scope::nothing;  // nothing: the filter confines no thread of this process
  Allowance allowance_;
  Kept before_{};
};

}  // namespace

void begin_noticing_filters() noexcept {
  of_this_thread() = Confinement::none;
  const RealLibc& libc = real_libc();
  if (libc.syscall != nullptr) cuwarden_next_syscall = libc.syscall;
  if (libc.prctl != nullptr) cuwarden_next_prctl = libc.prctl;
}

void confinement_at_start() noexcept {
  const ErrnoGuard keep;
  of_this_thread() = Confinement::none;
  if (prctl(PR_GET_SECCOMP) != 0) mode_tells.store(false, std::memory_order_relaxed);
  if (!is_readable(&keep)) cuwarden::detail::probing_fails.store(true, std::memory_order_relaxed);
}

void confinement_in_fork() noexcept {
  confines_all.store(false, std::memory_order_relaxed);
  mode_must_be_asked.store(false, std::memory_order_relaxed);
  cuwarden::detail::asks_confinement.store(nullptr, std::memory_order_relaxed);
}

bool is_confined_unnoticed() noexcept {
  if (is_confined()) return true;
  // Filters on top of an earlier one do not change the mode.
  if (!mode_tells.load(std::memory_order_relaxed)) return false;
  const ErrnoGuard keep;
  if (prctl(PR_GET_SECCOMP) == 0) return false;
  may_ask_mode.store(false, std::memory_order_relaxed);
  may_ask_process.store(false, std::memory_order_relaxed);
  cuwarden::detail::confined_may_probe.store(false, std::memory_order_relaxed);
  mode_must_be_asked.store(true, std::memory_order_relaxed);
  cuwarden::detail::asks_confinement.store(thread_is_confined, std::memory_order_release);
  return true;
}

bool may_confined_ask_process() noexcept { return may_ask_process.load(std::memory_order_relaxed); }

}  // namespace cuwarden::shim

// seccomp_entry.S jumps to these functions instead of those that the program called.
extern "C" {

[[gnu::visibility("hidden")]] int cuwarden_prctl_that_confines(int option, unsigned long mode,
                                                               unsigned long filter,
                                                               unsigned long fourth,
                                                               unsigned long fifth) {
  using namespace cuwarden::shim;
  const ComingFilter coming(installed_by_prctl(mode, filter));
  const int result = cuwarden_next_prctl(option, mode, filter, fourth, fifth);
  if (result != 0) coming.did_not_come();
  return result;
}

// The last argument is on the stack. If the program gave fewer arguments, it is another value,
// which the kernel ignores.
[[gnu::visibility("hidden")]] long cuwarden_syscall_that_may_confine(long number, long a, long b,
                                                                     long c, long d, long e,
                                                                     long f) {
  using namespace cuwarden::shim;
  const auto first = static_cast<unsigned long>(a), second = static_cast<unsigned long>(b);
  const bool is_seccomp = number == SYS_seccomp;
  const auto third = static_cast<unsigned long>(c);
  const ComingFilter coming(is_seccomp                ? installed_by_seccomp(first, second, third)
                            : first == PR_SET_SECCOMP ? installed_by_prctl(second, third)
                                                      : Installation{});
  const long result = cuwarden_next_syscall(number, a, b, c, d, e, f);
  // A filter with a listener returns its descriptor. Without a listener, a number is the id of a
  // thread which could not be confined with the others.
  const bool came =
      result == 0 || (result > 0 && is_seccomp && (second & SECCOMP_FILTER_FLAG_NEW_LISTENER) != 0);
  if (!came) coming.did_not_come();
  return result;
}

}  // extern "C"
