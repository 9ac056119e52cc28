// The memory that is recorded, and the process that it belongs to. A forked child has a copy of its
// own. A child of vfork, or of clone with CLONE_VM, has a pid of its own but shares its parent's
// memory: its allocations are recorded with the parent's, and its end is not the parent's end.
#pragma once

#include <atomic>
#include <cstdint>

namespace cuwarden::shim {

// Tells if the calling process owns the memory that it runs in.
class AddressSpace {
 public:
  // Marks the memory as the calling process's. To be called by the shim's constructor; later calls
  // do nothing.
  void mark() noexcept;
  // False if mark() could not mark the memory, since the kernel cannot wipe a page in forked
  // children (before Linux 4.14).
  bool is_marked() const noexcept { return page_.load(std::memory_order_acquire) != nullptr; }

  // True if the memory was marked or taken over since the last fork; false in a forked child until
  // take_over().
  bool is_ours() const noexcept {
    const Page* page = page_.load(std::memory_order_acquire);
    return page != nullptr && page->state.load(std::memory_order_acquire) == State::ours;
  }
  // Makes a forked child the owner of its memory; `begin_anew` must forget the parent's records. If
  // several threads call at once, one does the work and the others wait for it.
  void take_over(void (*begin_anew)()) noexcept;

  // Returns the pid of the process that the memory belongs to; 0 in a forked child before
  // take_over().
  int owner() const noexcept;
  // True if the memory is the calling process's own; false in a vforked child. Takes a system call.
  bool belongs_to_caller() const noexcept;

 private:
  // In memory that a forked child finds full of zeros: getpid would cost a system call.
  enum class State : std::uint32_t { wiped, ours, being_taken_over };
  struct Page {
    std::atomic<State> state;
    std::atomic<int> owner;
    // A forked child's child may have taken over the memory that it shares with its parent.
    std::atomic<bool> is_guess;
    // Inode of the owner's pid namespace, if the owner is the first process there; 0: not known.
    std::uint64_t pid_namespace;
  };

  std::atomic<Page*> page_{nullptr};
};

}  // namespace cuwarden::shim
