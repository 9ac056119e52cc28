#include "shim/policy/reclaimers.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <csignal>
#include <string>

#include "runtime_hooks/core/errno_guard.hpp"
#include "shim/support/loaded_objects.hpp"
#include "shim/support/log.hpp"
#include "shim/support/real_libc.hpp"

namespace cuwarden::shim {
namespace {

// The program's signals are for its own threads; those of faults are this thread's own.
class SignalsHeld {
 public:
  SignalsHeld() noexcept {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
      sigdelset(&all, fault);
    sigprocmask(SIG_SETMASK, &all, &before_);  // on Linux, of the thread
  }
  ~SignalsHeld() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

// libpthread's before glibc 2.34, which may be loaded late.
struct ThreadFunctions {
  int (*create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  int (*detach)(pthread_t);
};
ThreadFunctions thread_functions() noexcept {
  return {reinterpret_cast<decltype(ThreadFunctions::create)>(function_in_libc("pthread_create")),
          reinterpret_cast<decltype(ThreadFunctions::detach)>(function_in_libc("pthread_detach"))};
}

bool start_thread(void* (*work)(void*), void* argument) noexcept {
  const ErrnoGuard keep;
  const ThreadFunctions functions = thread_functions();
  if (functions.create == nullptr || functions.detach == nullptr) return false;
  const SignalsHeld held;
  pthread_t thread{};
  if (functions.create(&thread, nullptr, work, argument) != 0) return false;
  functions.detach(thread);
  return true;
}

}  // namespace

constinit rescue::Reclaimers reclaimers(start_thread);

// Found anew each time: Python may be loaded late, and unloaded.
bool holds_lock(std::string_view name) noexcept {
  using Check = int (*)();
  void* found = nullptr;
  if (name == "python:gil")
    any_loaded_object([&](const LoadedObject& object) {
      found = object.find("PyGILState_Check");
      return found != nullptr;
    });
  return found != nullptr && reinterpret_cast<Check>(found)() == 1;
}

void say_reclaimer_failure(std::string_view name, rescue::Reclaimers::Failure failure) noexcept
    try {
  using enum rescue::Reclaimers::Failure;
  const auto text = [failure] {
    switch (failure) {
      case does_not_return:
        return "does not return: the request goes on without it (CUWARDEN_SYNC_TIMEOUT)";
      case threw:
        return "ended by an exception: the request goes on without it";
      case gave_nothing:
        return "gave nothing back";
      default:
        return "was not called: no thread could be started for it";
    }
  };
  log_warn(fmt::format("reclaimer {} {}", name, text()));
} catch (...) {
}  // no memory to say it with

}  // namespace cuwarden::shim
