// Reclaimers: functions of the program and its libraries that give back memory which they keep for
// later, such as caches. They are registered by the functions of cuwarden.h.
//
// Each call runs in a new thread, while the requesting thread waits. So the requesting thread can
// give up on a function that does not return. A function is not called again before its last call
// has returned.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/host_process.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/serving/notices.hpp"

namespace cuwarden::rescue {

// A reclaimer: a function of the program that frees memory which the program keeps for later.
// `device`: ordinal of the device; -1: page-locked host memory. `bytes`: size of the refused
// request, or 1 GiB if that is unknown; the function may free more or less. `argument`: the
// argument with which it was registered. Returns the freed bytes; 0: none.
using ReclaimFunction = std::size_t (*)(int device, std::size_t bytes, void* argument);

// Returns true while the calling thread runs a reclaimer (a function of the program that frees
// memory). If a request of the reclaimer itself is refused, no rung is tried for it.
bool is_reclaiming() noexcept;

// The reclaimers that are registered in the process: functions of the program that empty caches
// when a request is refused. All threads may call the functions at any time.
class Reclaimers {
 public:
  // Most reclaimers (functions that empty caches) that can be registered at a time.
  static constexpr std::size_t limit = 16;

  // `process` starts threads; `clock` measures the waits for calls. Both outlive the object.
  explicit constexpr Reclaimers(HostProcess& process, Clock& clock = system_clock) noexcept
      : process_(process), clock_(clock) {}

  // Registers a reclaimer (a function that empties a cache). `name`: its name in messages and the
  // report. `modules`: comma-separated list of parts of libraries' paths; the entry "python:gil"
  // means Python's global interpreter lock. The reclaimer is not called for a request that comes
  // through one of the libraries, or from a thread that holds the lock. It is not called either if
  // the request's call stack is not known as a whole, or while a stream is captured. Both texts are
  // copied. `ReclaimFunction`: not null. `argument`: passed to each call of the function; may be
  // null. Returns an id for remove(), from 1. Returns 0 if `limit` reclaimers are registered, if a
  // text does not fit into its field of Entry, or if the object's lock cannot be had.
  int add(std::string_view name, std::string_view modules, ReclaimFunction,
          void* argument) noexcept;
  // Removes the reclaimer (a function that empties a cache) with the id `id`. No new call of it
  // begins. Waits for a call under way until `deadline_ns` on the clock that the constructor was
  // given. Returns true once no call runs. Returns false if no reclaimer has the id; if the
  // object's lock cannot be had, and nothing was removed; or if the call has not returned in time.
  // In the last case remove() may be called again, to wait longer. A reclaimer may remove itself:
  // remove() then waits for nothing and returns true.
  bool remove(int id, std::uint64_t deadline_ns) noexcept;
  // Must be called in a forked child, which lacks the threads in which reclaimers (functions that
  // empty caches) were called. Marks these calls as ended, so that the reclaimers may be called
  // again. A reclaimer that was being removed is removed.
  void forked() noexcept;

  // Returns true if any reclaimer (a function that empties a cache) is registered.
  bool any() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }
  // Returns the number of reclaimers (functions that empty caches) that were ever registered. A
  // caller compares it with an earlier value to find out if a new one may help.
  std::uint32_t changes() const noexcept { return added_.load(std::memory_order_relaxed); }

  // Copy of the registration of a reclaimer (a function that empties a cache): its id, its name and
  // its modules.
  struct Entry {
    int id = 0;  // the reclaimer's id; 0: the entry is empty
    // Texts that add() was given, each with a zero byte at its end.
    char name[64]{}, modules[256]{};
  };
  // Copies the registration of the reclaimer (a function that empties a cache) at `index` (0 to
  // limit - 1) to `Entry`. Returns false, with nothing copied, if none is registered at that index,
  // if it is being removed, or if the object's lock cannot be had.
  bool entry(std::size_t index, Entry&) noexcept;

  // A call of a reclaimer (a function that empties a cache): the memory that it is asked to give
  // back, and the time until which it is waited for.
  struct Wanted {
    // The driver's own functions. They outlive the reclaimer's thread, even after a timeout.
    const driver::RealDriver* real;
    ContextId context;  // context that is current during the call; 0: none
    int device;         // ordinal of the refused request's device; -1: page-locked host memory
    std::size_t bytes;  // size of the refused request; 1 GiB if that is unknown
    // Time, in nanoseconds of the clock of Reclaimers, until which a thread waits for the call.
    std::uint64_t deadline_ns;
  };
  // Results of Reclaimers::call(), which calls a reclaimer (a function that empties a cache) in a
  // new thread and waits for it.
  enum class Answer : std::uint8_t {
    // The call of the reclaimer is over: it has returned, or it was not called because the deadline
    // had come.
    returned,
    // Another thread's call of the reclaimer was under way, and has ended. This call() made none.
    of_another,
    // The reclaimer has not returned by the deadline. Or another thread's call of it is under way,
    // and that thread has given up waiting.
    timed_out,
    threw,      // the reclaimer ended by an exception or by pthread_exit
    no_thread,  // the reclaimer was not called, because no thread could be started
    // The reclaimer with the id is removed or being removed, or the lock of Reclaimers cannot be
    // had.
    gone,
  };
  // Calls the reclaimer (a function that empties a cache) with the id `id` in a new thread.
  // `index`: index of the reclaimer's slot, 0 to limit - 1. Waits until it returns or
  // Wanted::deadline_ns has come. If another thread's call of the reclaimer is under way, waits for
  // that call instead. Sets `given_back` to the bytes that the reclaimer says it has freed, if the
  // answer is `returned`; otherwise to 0.
  Answer call(std::size_t index, int id, const Wanted&, std::size_t& given_back) noexcept;

  // Returns true at the first call for this kind of failure of the reclaimer (a function that
  // empties a cache) at `index` (0 to limit - 1). The caller then tells the user of the failure.
  bool is_first_time(std::size_t index, serving::ReclaimerFailure) noexcept;

 private:
  // States of a slot for a reclaimer. `empty`: it has no reclaimer. `ready`: its reclaimer may be
  // called. `running`: its reclaimer is being called.
  enum class State : std::uint8_t { empty, ready, running };
  // One of `limit` slots, each of which holds one reclaimer or none.
  struct Slot {
    State state = State::empty;  // tells if the slot has a reclaimer, and if it is being called
    bool ends = false;           // true if remove() was called while the reclaimer runs
    bool given_up = false;       // true if the thread that made the running call no longer waits
    Entry entry{};               // the reclaimer's id, name and modules
    ReclaimFunction function = nullptr;  // the reclaimer; null only in a slot never used
    void* argument = nullptr;            // passed to each call of the reclaimer; may be null
    // The memory that the slot's last call is to give back, and the end of the wait for the call.
    // Without meaning before the slot's first call.
    Wanted wanted{};
    Answer answer{};              // end of the slot's last call; without meaning before
    std::size_t given_back = 0;   // bytes that the reclaimer freed in the slot's last call
    Reclaimers* owner = nullptr;  // the object of which this slot is a part
    // Number of calls of the slot's reclaimers that have ended.
    std::atomic<std::uint32_t> returned{0};
    // Bit N is set once the user was told of a failure of the reclaimer: the ReclaimerFailure of
    // value N.
    std::atomic<std::uint32_t> told{0};
  };
  // Start function of a thread that calls a reclaimer. `slot`: the Slot that has the reclaimer.
  // Returns null.
  static void* run(void* slot);
  // Calls the slot's reclaimer in the calling thread. Sets `given_back` to the bytes that it has
  // freed. Returns `returned` or `threw`; does not return if pthread_exit ends the thread.
  static Answer run_function(Slot&, const Wanted&, std::size_t& given_back);
  // Ends the slot's call under way: stores its result, and wakes the threads that wait for it. The
  // reclaimer may then be called again. If remove() was called during the call, the slot becomes
  // empty instead. `Answer`: how the call ended. `given_back`: bytes that the reclaimer has freed.
  // The caller must not hold `lock_`.
  void returned(Slot&, Answer, std::size_t given_back) noexcept;
  // Waits until Slot::returned, the number of the reclaimer's calls that have returned, differs
  // from `before`. Returns false if it has not by `deadline_ns` of the constructor's clock.
  bool wait_for(Slot&, std::uint32_t before, std::uint64_t deadline_ns) noexcept;

  HostProcess& process_;  // starts the threads in which reclaimers are called
  Clock& clock_;          // tells when the wait for a reclaimer is over
  FutexLock lock_;        // guards `slots_` and `last_id_`; never held during a call
  int last_id_ = 0;       // id of the reclaimer that was added last; 0: none was
  // Number of reclaimers that are registered (`count_`), and that ever were registered (`added_`).
  std::atomic<std::uint32_t> count_{0}, added_{0};
  // The reclaimers, in no order, between empty slots.
  Slot slots_[limit];
};

}  // namespace cuwarden::rescue
