#include "shim/support/memory_owner.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/futex_wait.hpp"
#include "runtime_hooks/core/memory/wiped_page.hpp"

namespace cuwarden::shim {
namespace {

// Pid of the first process of a container, or of any other pid namespace.
constexpr int first_process = 1;

// Returns the inode of the calling process's pid namespace; 0 if it is not known.
std::uint64_t pid_namespace() noexcept {
  const ErrnoGuard keep;
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

bool is_gone(int process) noexcept {
  const ErrnoGuard keep;
  return kill(process, 0) != 0 && errno == ESRCH;
}

}  // namespace

void MemoryOwner::mark() noexcept {
  Page* present = page_.load(std::memory_order_acquire);
  if (present != nullptr) return;
  void* memory = make_wiped_page(sizeof(Page));
  if (memory == nullptr) return;
  const int self = getpid();
  auto* const page = new (memory)
      Page{State::ours, self, false, false, self == first_process ? pid_namespace() : 0};
  if (!page_.compare_exchange_strong(present, page, std::memory_order_acq_rel))
    munmap(memory, sizeof(Page));
}

bool MemoryOwner::take_over(Clock& clock, void (*begin_anew)()) noexcept {
  constexpr std::uint64_t longest_ns = 10'000'000'000;
  Page* const page = page_.load(std::memory_order_acquire);
  if (page == nullptr) return true;
  std::uint32_t found = State::wiped;
  if (!page->state.compare_exchange_strong(found, State::being_taken_over)) {
    const std::uint64_t deadline_ns = clock.now_ns() + longest_ns;
    while (page->state.load(std::memory_order_acquire) == State::being_taken_over) {
      if (page->is_slow.load(std::memory_order_relaxed)) return false;
      const std::uint64_t time_ns = clock.now_ns();
      if (time_ns >= deadline_ns)
        page->is_slow.store(true, std::memory_order_relaxed);
      else
        clock.wait_ns(page->state, State::being_taken_over, deadline_ns - time_ns);
    }
    return true;
  }
  page->owner.store(getpid(), std::memory_order_relaxed);
  page->is_guess.store(true, std::memory_order_relaxed);
  begin_anew();
  page->state.store(State::ours, std::memory_order_release);
  futex_wake_all(page->state);
  return true;
}

int MemoryOwner::owner() const noexcept {
  const Page* const page = page_.load(std::memory_order_acquire);
  return page == nullptr ? 0 : page->owner.load(std::memory_order_relaxed);
}

bool MemoryOwner::belongs_to_caller() const noexcept {
  Page* const page = page_.load(std::memory_order_acquire);
  if (page == nullptr) return false;
  const int owner = page->owner.load(std::memory_order_relaxed), self = getpid();
  // A child that shares the memory may be the first process of another pid namespace.
  if (owner == self)
    return owner != first_process || is_confined() || page->pid_namespace == 0 ||
           page->pid_namespace == pid_namespace();
  if (owner == 0 || !page->is_guess.load(std::memory_order_relaxed) || !is_gone(owner))
    return false;
  // The process that took the memory over has ended, and this one still uses the memory.
  page->owner.store(self, std::memory_order_relaxed);
  return true;
}

}  // namespace cuwarden::shim
