#include "shim/support/address_space.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/futex_wait.hpp"
#include "runtime_hooks/core/wiped_page.hpp"

namespace cuwarden::shim {
namespace {

bool is_gone(int process) noexcept {
  const ErrnoGuard keep;
  return kill(process, 0) != 0 && errno == ESRCH;
}

}  // namespace

void AddressSpace::mark() noexcept {
  Page* present = page_.load(std::memory_order_acquire);
  if (present != nullptr) return;
  void* memory = make_wiped_page(sizeof(Page));
  if (memory == nullptr) return;
  auto* const page = new (memory) Page{State::ours, getpid(), false};
  if (!page_.compare_exchange_strong(present, page, std::memory_order_acq_rel))
    munmap(memory, sizeof(Page));
}

void AddressSpace::take_over(void (*begin_anew)()) noexcept {
  Page* const page = page_.load(std::memory_order_acquire);
  if (page == nullptr) return;
  State found = State::wiped;
  if (!page->state.compare_exchange_strong(found, State::being_taken_over)) {
    while (page->state.load(std::memory_order_acquire) == State::being_taken_over)
      futex_wait(page->state, State::being_taken_over);
    return;
  }
  page->owner.store(getpid(), std::memory_order_relaxed);
  page->is_guess.store(true, std::memory_order_relaxed);
  begin_anew();
  page->state.store(State::ours, std::memory_order_release);
  futex_wake_all(page->state);
}

int AddressSpace::owner() const noexcept {
  const Page* const page = page_.load(std::memory_order_acquire);
  return page == nullptr ? 0 : page->owner.load(std::memory_order_relaxed);
}

bool AddressSpace::belongs_to_caller() const noexcept {
  Page* const page = page_.load(std::memory_order_acquire);
  if (page == nullptr) return false;
  const int owner = page->owner.load(std::memory_order_relaxed), self = getpid();
  if (owner == self) return true;
  if (owner == 0 || !page->is_guess.load(std::memory_order_relaxed) || !is_gone(owner))
    return false;
  // The memory has outlived the process that took it over.
  page->owner.store(self, std::memory_order_relaxed);
  return true;
}

}  // namespace cuwarden::shim
