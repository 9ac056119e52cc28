// The descriptor numbers 0 to 2 belong to the program's standard streams, even while they are
// closed: a thread that writes to a closed standard output must get its error, and must not write
// into a file that cuwarden has just opened. So a descriptor of ours never gets such a number. The
// kernel gives each new descriptor the lowest number that is free; therefore the free ones of these
// three are occupied while a file is opened.
//
// A number is occupied by a stand-in descriptor: one of the root folder that allows no access
// (O_PATH), so that read() and write() answer EBADF, as they do on a closed descriptor. A stand-in
// lasts for a few microseconds. Meanwhile the program meets two differences: its own open() gets a
// higher number than it would have got, and its close() of the number succeeds. Both matter only to
// a program that closes and reopens its standard streams at that very moment, which is rare.
// Without stand-ins, another thread's output would be lost and would damage the report.
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <ctime>

#include "runtime_hooks/core/errno_guard.hpp"

namespace cuwarden {

namespace detail {

// The state that all objects of class StandardNumbersHeld in a process share: which of the
// descriptor numbers 0 to 2 are occupied, by how many objects.
struct StandardNumbers {
  // A lock on the other fields of this struct. Its value is the process id of the thread that has
  // the lock, or 0 if the lock is free. In a forked child, the parent's id counts as free.
  std::atomic<int> holder{0};
  // A counter that is odd while at least one StandardNumbersHeld occupies descriptor numbers.
  // Raised by one when the first of them begins to do so, and when the last one has ended.
  std::atomic<unsigned> turns{0};
  // Id of the process in which `scopes` was counted; 0 at first. If it is another process's id, as
  // in a new forked child, `scopes` counts as 0.
  int process = 0;
  unsigned scopes = 0;  // Number of StandardNumbersHeld that occupy descriptor numbers now.
  // placed[N] is true if descriptor N is a stand-in, which only keeps the number N occupied.
  bool placed[3] = {};
};

}  // namespace detail

// Keeps the descriptor numbers 0 to 2 occupied for the length of a scope, so that no file opened in
// the scope gets one of them. Any number of threads and scopes may do so at once. Does nothing if
// all three are open already when the scope begins, or if the lock that all scopes share cannot be
// taken within 10 ms. To be used around each opening of a file by cuwarden, also around its calls
// of libraries that open files. Keeps errno.
class [[nodiscard]] StandardNumbersHeld {
 public:
  // Begins to occupy the descriptor numbers 0 to 2, unless all three are open already.
  StandardNumbersHeld() noexcept {
    const ErrnoGuard keep;
    const unsigned turn = shared_.turns.load(std::memory_order_acquire);
    const bool nobody_holds = turn % 2 == 0;
    // In the usual case, the program has the descriptors 0 to 2 open itself, and no lock is needed.
    if (nobody_holds && all_open() && shared_.turns.load(std::memory_order_acquire) == turn) return;
    const Turn mine;
    if (!mine) return;
    if (shared_.process != mine.process()) {
      // The scopes were begun by threads of the parent process, which do not run in this child.
      shared_.process = mine.process();
      shared_.scopes = 0;
      shared_.turns.fetch_and(~1u, std::memory_order_release);
    }
    if (shared_.scopes++ == 0) shared_.turns.fetch_add(1, std::memory_order_release);
    holds_ = true;
    put_stand_ins();
  }
  ~StandardNumbersHeld() {
    if (!holds_) return;
    const ErrnoGuard keep;
    const Turn mine;
    if (!mine || shared_.process != mine.process() || --shared_.scopes != 0) return;
    take_away();
    shared_.turns.fetch_add(1, std::memory_order_release);
  }
  StandardNumbersHeld(const StandardNumbersHeld&) = delete;
  StandardNumbersHeld& operator=(const StandardNumbersHeld&) = delete;

  static constexpr int count = 3;  // The numbers of standard streams are 0 to count - 1.

 private:
  // The state that all objects of this class in the process share.
  static inline constinit detail::StandardNumbers shared_{};

  // A lock over `shared_` for the length of a scope. A waiting thread gives up after 10 ms: it may
  // have interrupted the holder by a signal handler, or the holder may have left by longjmp. The
  // object then converts to false, and the file is opened without occupied numbers.
  class Turn {
   public:
    // Takes the lock `shared_.holder`, for which it waits up to 10 ms.
    Turn() noexcept : process_(static_cast<int>(syscall(SYS_getpid))) {
      constexpr timespec pause{.tv_sec = 0, .tv_nsec = 100'000};
      for (int attempt = 0; attempt < 100 && !has_; ++attempt) {
        int seen = shared_.holder.load(std::memory_order_relaxed);
        // If `holder` is another process's id, a thread of the parent process had the lock at the
        // fork. That thread does not run in this process, so the lock is free here.
        if (seen != process_)
          has_ = shared_.holder.compare_exchange_strong(seen, process_, std::memory_order_acquire);
        // glibc's nanosleep is a cancellation point.
        if (!has_) syscall(SYS_nanosleep, &pause, nullptr);
      }
    }
    ~Turn() {
      if (has_) shared_.holder.store(0, std::memory_order_release);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    explicit operator bool() const noexcept { return has_; }  // True if the lock was taken.
    int process() const noexcept { return process_; }         // Returns the id of this process.

   private:
    const int process_;  // Id of the calling process.
    bool has_ = false;   // True if this object has taken the lock `shared_.holder`.
  };

  // True if the descriptor `number` is open.
  static bool is_open(int number) noexcept { return fcntl(number, F_GETFD) >= 0; }
  // True if the descriptors 0, 1 and 2 are open: the program's, or stand-ins that occupy numbers.
  static bool all_open() noexcept { return is_open(0) && is_open(1) && is_open(2); }

  // Opens a descriptor that only occupies its number, one of 0 to 2 (O_PATH: reads and writes fail
  // with EBADF). Returns the number, which is the lowest free one; negative on failure. The caller
  // closes it.
  static int open_stand_in() noexcept {
    return static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/", O_PATH | O_CLOEXEC, 0));
  }
  // Opens stand-in descriptors, which only occupy their numbers, until 0 to 2 are all open. Opens
  // fewer if the process may have no more descriptors.
  static void put_stand_ins() noexcept {
    for (int attempt = 0; attempt < 2 * count && !all_open(); ++attempt) {
      const int number = open_stand_in();
      // The stand-in was not opened, as when the process may have no more descriptors. Then the
      // file that cuwarden wants to open cannot be opened either.
      if (number < 0) return;
      if (number >= count) {
        // The program has meanwhile opened a file, which has got the last free number.
        syscall(SYS_close, number);
        return;
      }
      shared_.placed[number] = true;
    }
  }
  // Closes the stand-in descriptors, which only occupy the numbers 0 to 2. If the program has
  // meanwhile opened a descriptor of its own with such a number, that descriptor stays open, unless
  // it is an O_PATH descriptor, too.
  static void take_away() noexcept {
    for (int number = 0; number < count; ++number) {
      if (!shared_.placed[number]) continue;
      shared_.placed[number] = false;
      const int flags = fcntl(number, F_GETFL);
      if (flags >= 0 && (flags & O_PATH) != 0) syscall(SYS_close, number);
    }
  }

  bool holds_ = false;  // True if this object occupies the numbers, until its destructor.
};

}  // namespace cuwarden
