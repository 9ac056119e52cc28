#include "tools/cuwarden/enough_stack.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

#include <cstddef>

namespace cuwarden {
namespace {

constexpr std::size_t least_bytes = std::size_t{1} << 20;
constexpr std::size_t own_bytes = std::size_t{8} << 20;

struct Call {
  int (*work)(int, char**);
  int count;
  char** arguments;
  int result;
};
constinit Call call{};  // makecontext() passes on no pointer

void work_on_own_stack() { call.result = call.work(call.count, call.arguments); }

}  // namespace

int with_enough_stack(int (*work)(int, char**), int count, char** arguments) {
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= least_bytes)
    return work(count, arguments);
  // The limit is also the size of each thread's stack.
  pthread_attr_t of_threads;
  if (pthread_attr_init(&of_threads) == 0) {
    pthread_attr_setstacksize(&of_threads, own_bytes);
    pthread_setattr_default_np(&of_threads);
    pthread_attr_destroy(&of_threads);
  }
  void* const stack = mmap(nullptr, own_bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  static ucontext_t here, other;  // each takes a kilobyte, of which there may be few
  if (stack == MAP_FAILED || getcontext(&other) != 0) return work(count, arguments);
  other.uc_stack.ss_sp = stack;
  other.uc_stack.ss_size = own_bytes;
  other.uc_link = &here;
  call = {work, count, arguments, 0};
  makecontext(&other, work_on_own_stack, 0);
  if (swapcontext(&here, &other) != 0) return work(count, arguments);
  return call.result;
}

}  // namespace cuwarden
