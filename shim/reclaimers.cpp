#include "shim/reclaimers.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <csignal>
#include <string>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/rescue/rungs.hpp"
#include "shim/loaded_objects.hpp"
#include "shim/log.hpp"
#include "shim/process.hpp"
#include "shim/real_libc.hpp"

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

bool start_thread(void* (*work)(void*), void* argument) noexcept {
  const ErrnoGuard keep;
  const RealLibc& libc = real_libc();
  if (libc.pthread_create == nullptr || libc.pthread_detach == nullptr) return false;
  const SignalsHeld held;
  pthread_t thread{};
  if (libc.pthread_create(&thread, nullptr, work, argument) != 0) return false;
  libc.pthread_detach(thread);
  return true;
}

// Everybody's stack has the main program.
std::string file_name_of_library_at(const void* function) {
  const LoadedObject object = object_at(reinterpret_cast<std::uintptr_t>(function));
  const std::string_view path = object ? object.path() : std::string_view();
  return std::string(path.substr(path.rfind('/') + 1));
}

// What a reclaimer throws comes from the program's C++ runtime and is caught by the one inside this
// library, whose unwinder must have left a frame before: else it ends the process.
void prepare_to_catch() noexcept {
  try {
    throw 0;
  } catch (...) {
  }
}

int refuse(std::string_view name, std::string_view why) {
  log_warn(fmt::format("reclaimer {}: {}; it is not registered", name, why));
  return 0;
}

}  // namespace

constinit rescue::Reclaimers reclaimers(start_thread);

void say_trouble(std::string_view name, rescue::Reclaimers::Trouble trouble) noexcept try {
  using enum rescue::Reclaimers::Trouble;
  const auto text = [trouble] {
    switch (trouble) {
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

// --- cuwarden.h, whose inline functions find these by name

extern "C" {

[[gnu::visibility("default")]] int cuwarden_1_register_reclaimer(
    const char* name, const char* modules, cuwarden::rescue::ReclaimFunction function,
    void* argument) noexcept try {
  using namespace cuwarden::shim;
  const cuwarden::ErrnoGuard keep;
  if (!Process::get().enabled()) return 0;
  if (name == nullptr || *name == '\0') return refuse("without a name", "a name is missing");
  if (function == nullptr) return refuse(name, "the function is null");
  std::string all = modules == nullptr ? "" : modules;
  if (const std::string own = file_name_of_library_at(reinterpret_cast<void*>(function));
      !own.empty())
    all += (all.empty() ? "" : ",") + own;
  if (std::string_view(name).size() > 63)
    return refuse(name, "its name is longer than 63 characters");
  if (all.size() > 255) return refuse(name, "its modules are longer than 255 characters");
  prepare_to_catch();
  const int number = reclaimers.add(name, all, function, argument);
  return number != 0 ? number : refuse(name, "there are 16 already");
} catch (...) {
  return 0;
}

[[gnu::visibility("default")]] int cuwarden_1_unregister_reclaimer(int number) noexcept {
  const cuwarden::ErrnoGuard keep;
  constexpr std::uint64_t patience_ns = 10'000'000'000;
  const std::uint64_t deadline_ns = cuwarden::rescue::now_ns() + patience_ns;
  return cuwarden::shim::reclaimers.remove(number, deadline_ns) ? 0 : -1;
}

}  // extern "C"
