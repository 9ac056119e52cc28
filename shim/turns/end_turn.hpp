// Takes turns among threads that end the process at the same time, for example by exit() in several
// threads. One of them writes the last report, and the others wait until it is written.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/clock.hpp"
#include "shim/turns/writing_turn.hpp"

namespace cuwarden::shim {

// Decides which thread writes a report at the end of the process, and which thread (the leader)
// runs exit() to its end. Any thread may call the functions, also in a signal handler. There is one
// object in a process.
class EndTurn {
 public:
  // `clock`: tells the time in all waits of this object's functions. It must outlive the object.
  explicit constexpr EndTurn(Clock& clock = system_clock) noexcept
      : clock_(clock), writing_(clock) {}

  // Sets the longest time that the last report may take to name functions (CUWARDEN_SYMBOL_TIME).
  // `ns`: nanoseconds. Threads that wait for a report wait up to ten seconds and this time. To be
  // called before any thread ends the process.
  void set_symbol_time(std::uint64_t ns) noexcept { symbol_time_ns_ = ns; }

  // Waits until no other thread writes a report. Returns true if the calling thread must write one
  // now and call give_back() afterwards. Returns false if the last report was already written, or
  // if another thread is stuck in writing: after ten seconds and the time of set_symbol_time().
  // `is_last`: true if the calling thread wants to write the process's last report. To be called
  // inside an OwnWork (a scope of cuwarden's own work), by which other threads notice if a jump
  // leaves the writing.
  //
  // A signal handler may have interrupted the calling thread's own writing. Then returns true only
  // if `is_last`, and the interrupted report is not the last one.
  bool take(bool is_last) noexcept;
  // Ends the turn to write that take() gave to the calling thread, and wakes threads that wait in
  // take(). `is_last`: true if no other report is to be written from now on; later calls of take()
  // then return false.
  void give_back(bool is_last) noexcept;

  // Waits until `done` is nonzero. The thread that writes a report sets it, in an exit handler of
  // libc's. After 0.5 s, stops waiting if no thread is writing a report, or if the writing thread
  // has ended. Stops in any case after the longest time that a report takes (longest_wait_ns()).
  // Returns at once if the calling thread is the one that writes. To be called by other threads in
  // exit().
  void wait_until(std::atomic<std::uint32_t>& done) noexcept;

  // Returns true if no other thread has called this function before the calling thread did. To be
  // called by each thread that calls quick_exit().
  bool is_first_in_quick_exit() noexcept;
  // Delays threads that call exit() after another thread has, so that the thread which called first
  // becomes the leader: the thread that runs exit() to its end. Returns at once in the thread that
  // called first; in others, once there is a leader, or after 50 ms. To be called by each thread
  // that calls exit().
  void enter_exit() noexcept;
  // Makes the calling thread the leader, which runs exit() to its end. Does nothing if there is a
  // leader already.
  void leads_the_end() noexcept;
  // True if another thread is the leader, which brings the process to its end by exit(), and that
  // thread has not ended.
  bool another_leads_the_end() const noexcept;
  // Waits for the leader (the thread that runs exit() to its end) to end the process; usually does
  // not return. Returns at once if there is no leader, if the calling thread is the leader, or if
  // the leader has ended. Returns later if the leader ends as a thread, without the process. The
  // leader may also be stuck, for example in exit handlers of the program that wait for the calling
  // thread. The leader counts as stuck after two seconds in which no thread writes a report, and in
  // any case after ten seconds and the time of set_symbol_time(). Then one of the waiting threads
  // becomes the leader and returns.
  void wait_for_leader() noexcept;

  // Forgets all threads that write reports or lead the end, and that the last report was written.
  // To be called in a forked child, which has none of its parent's threads.
  void reset() noexcept;

 private:
  // The kernel's id of a thread, or 0 for no thread. It has 32 bits, so that a futex can wait for
  // its change.
  using Thread = std::uint32_t;
  // Returns the kernel's id of the calling thread, which is never 0.
  static Thread self() noexcept;
  // Returns true if the process has no thread with this id any more.
  static bool has_ended(Thread) noexcept;
  // Stores the calling thread in `first` if no thread is stored there (0). Returns true if the
  // calling thread is the stored one.
  static bool is_first(std::atomic<Thread>& first) noexcept;
  // Returns the longest time in nanoseconds for which a thread waits for another thread's report:
  // ten seconds, and the time that set_symbol_time() allows for names.
  std::uint64_t longest_wait_ns() const noexcept;

  Clock& clock_;         // tells the time in all waits of the functions
  WritingTurn writing_;  // the turn of the thread that writes a report
  // True if the report that a thread writes now is the process's last one. The value has no meaning
  // while no thread writes.
  std::atomic<bool> writes_last_{false};
  std::atomic<std::uint32_t> over_{0};          // 1: the last report is written; 0: not yet
  std::atomic<Thread> first_in_exit_{0};        // first thread in exit(); 0: none yet
  std::atomic<Thread> first_in_quick_exit_{0};  // first thread in quick_exit(); 0: none yet
  // The leader, the thread that runs exit() to its end; 0: there is none yet.
  std::atomic<Thread> leader_{0};
  // Longest time, in nanoseconds, in which the last report may look up names of functions.
  std::uint64_t symbol_time_ns_ = 0;
};

}  // namespace cuwarden::shim
