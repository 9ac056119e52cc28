// Functions of the program and its libraries that give back memory which they keep (cuwarden.h).
//
// Each runs in a thread of its own that is made for the occasion, while the thread whose request
// was refused waits: nobody else can be told not to wait for a function that does not return. What
// is in the middle of a call is not called again before that one returns.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::rescue {

// Gives back what it keeps on the device (-1: page-locked host memory), of which `bytes` are asked
// for. Returns how many bytes it gave back.
using ReclaimFunction = std::size_t (*)(int device, std::size_t bytes, void* argument);

// The calling thread runs such a function: what it asks for in vain makes nobody else give back.
bool is_reclaiming() noexcept;

class Reclaimers {
 public:
  static constexpr std::size_t limit = 16;

  // Starts a thread that nobody joins and that takes no signal of the program's.
  using StartThread = bool (*)(void* (*work)(void*), void* argument) noexcept;
  explicit constexpr Reclaimers(StartThread start) noexcept : start_(start) {}
  Reclaimers(const Reclaimers&) = delete;
  Reclaimers& operator=(const Reclaimers&) = delete;

  // `modules`: comma-separated parts of paths of libraries; a longer list or name is refused.
  // Returns what remove() wants; 0: there is no room.
  int add(std::string_view name, std::string_view modules, ReclaimFunction,
          void* argument) noexcept;
  // It is not called any more. False: there is none of that number, or a call had not returned by
  // then, which may be waited for again. A function may take itself out.
  bool remove(int id, std::uint64_t deadline_ns) noexcept;
  // In a forked child, which has none of the threads. Does something the first time.
  void forked() noexcept;

  bool any() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }
  std::uint32_t changes() const noexcept { return added_.load(std::memory_order_relaxed); }

  struct Entry {
    int id = 0;
    char name[64]{}, modules[256]{};  // end with a zero byte
  };
  // A copy; false: there is none at this place.
  bool entry(std::size_t place, Entry&) noexcept;

  struct Wanted {
    const driver::RealDriver* real;  // outlives the call, which may outlive the waiting for it
    ContextId context;               // made current
    int device;
    std::size_t bytes;
    std::uint64_t deadline_ns;
  };
  enum class Answer : std::uint8_t {
    returned,
    of_another,  // thread: its call, whatever that was made for, has ended
    timed_out,   // also at once, where somebody else has given that call up
    threw,
    no_thread,
    gone,  // there is another one at this place, or none
  };
  Answer call(std::size_t place, int id, const Wanted&, std::size_t& given_back) noexcept;

  enum class Trouble : std::uint8_t { does_not_return, threw, gave_nothing, no_thread };
  // Whether it is the first of its kind with this one: to be said once.
  bool is_news(std::size_t place, Trouble) noexcept;

 private:
  enum class State : std::uint8_t { empty, ready, running };
  struct Slot {
    State state = State::empty;
    bool ends = false;      // with the call that runs
    bool given_up = false;  // nobody waits for that call any more
    Entry entry{};
    ReclaimFunction function = nullptr;
    void* argument = nullptr;
    Wanted wanted{};
    Answer answer{};
    std::size_t given_back = 0;
    Reclaimers* owner = nullptr;
    std::atomic<std::uint32_t> returned{0};  // how many calls did
    std::atomic<std::uint32_t> told{0};      // a bit for each Trouble
  };
  static void* run(void* slot);
  static Answer run_function(Slot&, const Wanted&, std::size_t& given_back);
  void returned(Slot&, Answer, std::size_t given_back) noexcept;
  static bool wait_for(Slot&, std::uint32_t before, std::uint64_t deadline_ns) noexcept;

  const StartThread start_;
  FutexLock lock_;
  int last_id_ = 0;
  std::atomic<std::uint32_t> count_{0}, added_{0};
  Slot slots_[limit];
};

}  // namespace cuwarden::rescue
