#include "tools/cuwarden/enough_stack.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstddef>

namespace cuwarden {
namespace {

constexpr std::size_t least_bytes = std::size_t{1} << 20;
constexpr std::size_t thread_bytes = std::size_t{8} << 20;

struct Call {
  int (*work)(int, char**);
  int count;
  char** arguments;
  sigset_t signals;
  int result = 0;
};

}  // namespace

int with_enough_stack(int (*work)(int, char**), int count, char** arguments) {
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= least_bytes)
    return work(count, arguments);
  Call call{work, count, arguments, {}};
  // Signals are the working thread's alone, which blocks them while it may not be interrupted.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &call.signals);
  const auto run = [](void* given) -> void* {
    auto& asked = *static_cast<Call*>(given);
    pthread_sigmask(SIG_SETMASK, &asked.signals, nullptr);
    asked.result = asked.work(asked.count, asked.arguments);
    return nullptr;
  };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, thread_bytes);
  pthread_t thread{};
  const bool began = pthread_create(&thread, &attributes, run, &call) == 0;
  pthread_attr_destroy(&attributes);
  if (!began) {
    pthread_sigmask(SIG_SETMASK, &call.signals, nullptr);
    return work(count, arguments);
  }
  pthread_join(thread, nullptr);
  return call.result;
}

}  // namespace cuwarden
