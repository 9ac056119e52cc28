// Functions of the program and its libraries that give back memory which they keep (cuwarden.h).
//
// Each call runs in a thread that is made for it, while the requesting thread waits: only so can
// the requesting thread give up on a function that does not return. A function is not called again
// before its last call has returned.
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

// Gives back memory that it keeps on the device (-1: page-locked host memory); `bytes` are wanted.
// Returns how many bytes it gave back.
using ReclaimFunction = std::size_t (*)(int device, std::size_t bytes, void* argument);

// Returns true while the calling thread runs a reclaimer: its own refused requests call no other.
bool is_reclaiming() noexcept;

class Reclaimers {
 public:
  static constexpr std::size_t limit = 16;

  // `process` and `clock` outlive the object.
  explicit constexpr Reclaimers(HostProcess& process, Clock& clock = system_clock) noexcept
      : process_(process), clock_(clock) {}
  Reclaimers(const Reclaimers&) = delete;
  Reclaimers& operator=(const Reclaimers&) = delete;

  // `modules`: comma-separated parts of paths of libraries. Returns the id that remove() takes; 0
  // where there is no room, or a text is longer than its field of Entry.
  int add(std::string_view name, std::string_view modules, ReclaimFunction,
          void* argument) noexcept;
  // Removes a reclaimer: no new call of it begins. Returns false where there is none with this id,
  // or where a call had not returned by `deadline_ns` of the clock, which may be waited for again.
  // A reclaimer may remove itself.
  bool remove(int id, std::uint64_t deadline_ns) noexcept;
  // To be called in a forked child, which has none of the threads.
  void forked() noexcept;

  // Returns true if there is a reclaimer.
  bool any() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }
  // Returns a number that changes with each reclaimer that is added.
  std::uint32_t changes() const noexcept { return added_.load(std::memory_order_relaxed); }

  // A copy of a registered reclaimer's texts. `id` is 0 if there is none.
  struct Entry {
    int id = 0;
    char name[64]{}, modules[256]{};  // end with a zero byte
  };
  // Copies the reclaimer at `index`, below `limit`. Returns false where there is none.
  bool entry(std::size_t index, Entry&) noexcept;

  // The memory that a reclaimer is asked for, and the bound of the wait for it.
  struct Wanted {
    const driver::RealDriver* real;  // outlives the call, even one that is no longer waited for
    ContextId context;               // made current in the new thread; 0: none
    int device;                      // -1: page-locked host memory
    std::size_t bytes;
    std::uint64_t deadline_ns;
  };
  enum class Answer : std::uint8_t {
    returned,
    of_another,  // a call that another thread had made was waited for, and has ended
    timed_out,   // also at once, where another thread has already given up on the call
    threw,
    no_thread,  // no thread could be started
    gone,       // the reclaimer of this id was removed
  };
  // Calls the reclaimer `id` at `index`, and waits for it until wanted.deadline_ns. Where a call is
  // under way already, waits for that one. Sets `given_back` to the bytes that the function
  // returned.
  Answer call(std::size_t index, int id, const Wanted&, std::size_t& given_back) noexcept;

  // Returns true the first time for each failure of the reclaimer at `index`.
  bool is_first_time(std::size_t index, serving::ReclaimerFailure) noexcept;

 private:
  enum class State : std::uint8_t { empty, ready, running };
  struct Slot {
    State state = State::empty;
    bool ends = false;      // true if the reclaimer goes when the running call returns
    bool given_up = false;  // true if no thread waits for the running call any more
    Entry entry{};
    ReclaimFunction function = nullptr;
    void* argument = nullptr;
    Wanted wanted{};
    Answer answer{};
    std::size_t given_back = 0;
    Reclaimers* owner = nullptr;
    std::atomic<std::uint32_t> returned{0};  // calls that have returned
    std::atomic<std::uint32_t> told{0};      // a bit for each failure that was told
  };
  static void* run(void* slot);
  static Answer run_function(Slot&, const Wanted&, std::size_t& given_back);
  void returned(Slot&, Answer, std::size_t given_back) noexcept;
  bool wait_for(Slot&, std::uint32_t before, std::uint64_t deadline_ns) noexcept;

  HostProcess& process_;
  Clock& clock_;
  FutexLock lock_;
  int last_id_ = 0;
  std::atomic<std::uint32_t> count_{0}, added_{0};
  Slot slots_[limit];
};

}  // namespace cuwarden::rescue
