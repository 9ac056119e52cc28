// The memory that is recorded, and the process that it belongs to. A forked child has a copy, which
// is another one. The children of vfork and of clone with CLONE_VM have pids of their own in memory
// that is their parent's: what they allocate is recorded with it, and their end is not its end.
#pragma once

#include <atomic>
#include <cstdint>

namespace cuwarden::shim {

class AddressSpace {
 public:
  // Marks the memory as that of the calling process, once. By the constructor, where the kernel
  // forked or executed the caller; any later call finds it marked.
  void mark() noexcept;
  // False: the kernel cannot mark memory for forks (before Linux 4.14), and mark() did nothing.
  bool is_marked() const noexcept { return page_.load(std::memory_order_acquire) != nullptr; }

  // False in a forked child until take_over().
  bool is_ours() const noexcept {
    const Page* page = page_.load(std::memory_order_acquire);
    return page != nullptr && page->state.load(std::memory_order_acquire) == State::ours;
  }
  // In a forked child: `begin_anew` forgets what is the parent's. Where several threads come at
  // once, one does it and the others wait for it.
  void take_over(void (*begin_anew)()) noexcept;

  // Pid of the process that the memory belongs to; 0 in a forked child before take_over().
  int owner() const noexcept;
  bool belongs_to_caller() const noexcept;

 private:
  // In memory that a forked child finds full of zeros: getpid would cost a system call.
  enum class State : std::uint32_t { wiped, ours, being_taken_over };
  struct Page {
    std::atomic<State> state;
    std::atomic<int> owner;
    // A forked child's child may have taken over the memory that it shares with its parent.
    std::atomic<bool> is_guess;
  };

  std::atomic<Page*> page_{nullptr};
};

}  // namespace cuwarden::shim
