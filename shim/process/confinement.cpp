#include "shim/process/confinement.hpp"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "runtime_hooks/hooks/call/hooked_call.hpp"
#include "runtime_hooks/ledger/write/allocation_records/threads.hpp"
#include "shim/files/ledger_location.hpp"
#include "shim/process/process.hpp"
#include "shim/support/own_stack.hpp"
#include "shim/support/real_libc.hpp"

// In confinement_entry.S.
extern "C" {
extern long (*cuwarden_next_syscall)(long, long, long, long, long, long, long);
extern int (*cuwarden_next_prctl)(int, unsigned long, unsigned long, unsigned long, unsigned long);
}

namespace cuwarden::shim {
namespace {

using hooks::Confinement;

// A filter was installed for all threads (SECCOMP_FILTER_FLAG_TSYNC).
constinit std::atomic<bool> confines_all{false};
// Rows of the ledger's threads when the first filter came: those threads were there before it.
constinit std::atomic<std::uint64_t> threads_before{0};
constinit int mode_at_start = 0;  // of seccomp, as PR_GET_SECCOMP gives it; -1 unknown

Confinement& of_this_thread() { return hooks::call_state.confinement; }

// A thread inherits the filters of the one that made it. Where it is not known which one that was,
// it counts as confined.
bool thread_is_confined() noexcept {
  const Confinement known = of_this_thread();
  if (known == Confinement::confined) return true;
  const Process& process = Process::get();
  if (!process.has_records()) return false;  // a forked child, which is not recorded
  if (confines_all.load(std::memory_order_relaxed)) return true;
  if (known == Confinement::none) return false;
  const std::uint64_t row = process.thread_row();
  return row == 0 || row >= threads_before.load(std::memory_order_relaxed);
}

enum class Scope { nothing, thread, process };

Scope scope_of_prctl(unsigned long option, unsigned long) {
  return option == PR_SET_SECCOMP ? Scope::thread : Scope::nothing;
}
Scope scope_of_seccomp(unsigned long operation, unsigned long flags) {
  if (operation == SECCOMP_SET_MODE_STRICT) return Scope::thread;
  if (operation != SECCOMP_SET_MODE_FILTER) return Scope::nothing;
  return (flags & SECCOMP_FILTER_FLAG_TSYNC) != 0 ? Scope::process : Scope::thread;
}

// The state of threads from before the program's call to after it: the filter holds as soon as the
// call returns, and in other threads perhaps earlier.
class ComingFilter {
 public:
  explicit ComingFilter(Scope scope) noexcept {
    if (scope == Scope::nothing) return;
    const ErrnoGuard keep;
    const bool was_confined = is_confined();
    // The process of a vfork shares this memory, and its filter is not ours.
    ledger::Writer* const ledger =
        was_confined ? Process::get().ledger() : Process::get().ledger_of_this_process();
    if (ledger == nullptr) return;
    ledger_ = ledger;
    scope_ = scope;
    before_ = of_this_thread();
    confined_all_before_ = confines_all.load(std::memory_order_relaxed);
    is_first_ = detail::asks_confinement.load(std::memory_order_relaxed) == nullptr;
    if (!was_confined) prepare();
    if (is_first_) threads_before.store(ledger->threads.rows(), std::memory_order_relaxed);
    of_this_thread() = Confinement::confined;
    if (scope == Scope::process) confines_all.store(true, std::memory_order_relaxed);
    detail::asks_confinement.store(thread_is_confined, std::memory_order_release);
  }
  ComingFilter(const ComingFilter&) = delete;
  ComingFilter& operator=(const ComingFilter&) = delete;

  void did_not_come() const noexcept {
    if (ledger_ == nullptr) return;
    of_this_thread() = before_;
    if (scope_ == Scope::process)
      confines_all.store(confined_all_before_, std::memory_order_relaxed);
    if (is_first_) detail::asks_confinement.store(nullptr, std::memory_order_release);
  }

 private:
  // The last moment at which anything may be asked of the kernel.
  void prepare() const noexcept {
    const Uncancelled whole;
    ledger_->make_room_ahead();
    if (is_first_)
      call_on_own_stack(
          [](void* ledger) {
            say_of_confinement(static_cast<const ledger::Writer*>(ledger)->path());
          },
          ledger_);
  }

  ledger::Writer* ledger_ = nullptr;  // null: the filter is none of ours
  Scope scope_ = Scope::nothing;
  Confinement before_ = Confinement::unknown;
  bool confined_all_before_ = false;
  bool is_first_ = false;
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
  confines_all.store(false, std::memory_order_relaxed);
  detail::asks_confinement.store(nullptr, std::memory_order_relaxed);
  mode_at_start = prctl(PR_GET_SECCOMP);
}

bool is_confined_unnoticed() noexcept {
  if (is_confined()) return true;
  // Filters on top of an earlier one do not change the mode.
  if (mode_at_start != 0) return false;
  const ErrnoGuard keep;
  if (prctl(PR_GET_SECCOMP) == 0) return false;
  of_this_thread() = Confinement::confined;
  detail::asks_confinement.store(thread_is_confined, std::memory_order_release);
  return true;
}

}  // namespace cuwarden::shim

// Jumped to by confinement_entry.S, in place of the functions that the program called.
extern "C" {

[[gnu::visibility("hidden")]] int cuwarden_prctl_that_confines(int option, unsigned long mode,
                                                               unsigned long filter,
                                                               unsigned long fourth,
                                                               unsigned long fifth) {
  using cuwarden::shim::ComingFilter, cuwarden::shim::Scope;
  const ComingFilter coming(Scope::thread);
  const int result = cuwarden_next_prctl(option, mode, filter, fourth, fifth);
  if (result != 0) coming.did_not_come();
  return result;
}

// The last argument lies on the stack. Where the program gave fewer, the word there is another one,
// and the kernel does not look at it.
[[gnu::visibility("hidden")]] long cuwarden_syscall_that_may_confine(long number, long a, long b,
                                                                     long c, long d, long e,
                                                                     long f) {
  using namespace cuwarden::shim;
  const auto first = static_cast<unsigned long>(a), second = static_cast<unsigned long>(b);
  const bool is_seccomp = number == SYS_seccomp;
  const ComingFilter coming(is_seccomp ? scope_of_seccomp(first, second)
                                       : scope_of_prctl(first, second));
  const long result = cuwarden_next_syscall(number, a, b, c, d, e, f);
  // A filter with a listener gives its descriptor. Without one, a number is that of a thread which
  // could not be confined with the others.
  const bool came =
      result == 0 || (result > 0 && is_seccomp && (second & SECCOMP_FILTER_FLAG_NEW_LISTENER) != 0);
  if (!came) coming.did_not_come();
  return result;
}

}  // extern "C"
