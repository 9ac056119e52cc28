// Tells which process the memory of the calling process belongs to. A forked child has a copy of
// its parent's memory, which is its own. A child of vfork, or of clone with CLONE_VM, has a pid of
// its own but shares its parent's memory: its allocations are recorded with the parent's, and its
// end is not the parent's end.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/clock.hpp"

namespace cuwarden::shim {

// Tells if the calling process owns the memory that it runs in. A child of vfork does not, since it
// runs in its parent's memory. A forked child runs in a copy, but owns it only after take_over():
// until then, the copy holds what the parent recorded. There is one object in a process.
class MemoryOwner {
 public:
  // Marks the memory that the caller runs in as the calling process's. The mark is a page that the
  // kernel fills with zeros in forked children. To be called by the shim's constructor, and again
  // before recording starts. is_marked() tells if a call succeeded; later calls then do nothing.
  void mark() noexcept;
  // True if mark() has succeeded, so that the memory's owner is known. mark() fails if the kernel
  // cannot fill a page with zeros in forked children (MADV_WIPEONFORK): before Linux 4.14, if a
  // seccomp filter refuses it, or without memory.
  bool is_marked() const noexcept { return page_.load(std::memory_order_acquire) != nullptr; }

  // True if this process has claimed its memory, by mark() or take_over(). False in a forked child
  // until it calls take_over(). True also in a child of vfork, which shares its parent's memory.
  // Makes no system call.
  bool is_ours() const noexcept {
    const Page* page = page_.load(std::memory_order_acquire);
    return page != nullptr && page->state.load(std::memory_order_acquire) == State::ours;
  }
  // Makes a forked child the owner of its memory, so that is_ours() becomes true. Calls
  // `begin_anew`, which must forget what the parent recorded. If several threads call at once, one
  // does the work and the others wait for it, by `clock`, for ten seconds at most. Does nothing if
  // is_marked() is false, or if is_ours() is true already. Returns true in all these cases.
  //
  // Returns false if the thread that does the work has not finished in time. That thread may never
  // finish: it may belong to another process that shares the memory (vfork) and has ended. From
  // then on, calls return false without a wait, until the work is finished after all.
  bool take_over(Clock& clock, void (*begin_anew)()) noexcept;

  // Returns the pid of the process that owns the memory that the caller runs in. In a child of
  // vfork, that is its parent. 0 if mark() has not succeeded, and in a forked child before
  // take_over().
  int owner() const noexcept;
  // True if the memory that the caller runs in is its own process's. False in a child of vfork, in
  // a forked child before take_over(), and if mark() has not succeeded. If the process that called
  // take_over() has ended, the caller becomes the owner. Makes a system call.
  bool belongs_to_caller() const noexcept;

 private:
  // State of this process's memory. wiped (0): a forked child has not called take_over() yet.
  // ours: this process has claimed the memory. being_taken_over: a thread is inside take_over().
  enum State : std::uint32_t { wiped, ours, being_taken_over };
  // A page that the kernel fills with zeros in forked children, so that a fork is noticed without
  // getpid, which would cost a system call.
  struct Page {
    // State of the process's memory: 0 (wiped) in a forked child until it calls take_over().
    std::atomic<std::uint32_t> state;
    // Pid of the process that owns the memory in which this page lies; 0 in a forked child before
    // take_over().
    std::atomic<int> owner;
    // True if take_over() has stored `owner`, the pid of the memory's owner. The true owner may
    // then be another process: a child of vfork, whose memory its parent goes on using, may have
    // called take_over().
    std::atomic<bool> is_guess;
    // True once a thread has waited in vain for another thread's take_over(). From then on, no
    // thread waits for it.
    std::atomic<bool> is_slow;
    // Inode of the pid namespace of the process that called mark(), if that process has pid 1 there
    // and the namespace is known; otherwise 0.
    std::uint64_t pid_namespace;
  };

  // The page that tells whose the memory is; null until mark() has made it.
  std::atomic<Page*> page_{nullptr};
};

}  // namespace cuwarden::shim
