// Caches that a test registers as reclaimers, on the ladder of fake_ladder.hpp.
#pragma once

#include <atomic>
#include <deque>
#include <thread>

#include "runtime_hooks/rescue/rungs/reclaimers.hpp"
#include "tests/comes_about.hpp"
#include "tests/unit/rescue/fake_ladder.hpp"

namespace cuwarden::rescue {
// A failure of a reclaimer (a callback that empties a cache), of which the user is told.
using Failure = serving::ReclaimerFailure;
// Failures of reclaimers, with the reclaimers' names.
using Failures = std::vector<std::pair<std::string, Failure>>;

// A cache with a reclaimer, the function that empties it: a test says how the reclaimer acts, and
// sees how it was called.
struct Cache {
  // Does the reclaimer's work, and returns the bytes that it gives back.
  std::function<std::size_t()> give_back = [] { return std::size_t{4096}; };
  // Number of calls of the reclaimer.
  std::atomic<int> calls{0};
  // Argument of the last call: ordinal of the device, -1 for host memory; -2: not called yet.
  int device = -2;
  // Argument of the last call: size of the refused request in bytes.
  std::size_t bytes = 0;
  // Result of is_reclaiming() in the last call.
  bool was_reclaiming = false;
  // Stream capture mode of the thread that made the last call.
  CUstreamCaptureMode capture_mode{};
  // The thread that made the last call.
  std::thread::id thread;
  // The reclaimer. Notes how it was called, and returns the result of give_back(). `argument`: the
  // Cache.
  static std::size_t reclaim(int device, std::size_t bytes, void* argument) {
    Cache& cache = *static_cast<Cache*>(argument);
    cache.device = device;
    cache.bytes = bytes;
    cache.was_reclaiming = is_reclaiming();
    cache.capture_mode = rescue::capture_mode;
    cache.thread = std::this_thread::get_id();
    ++cache.calls;
    return cache.give_back();
  }
};

// Caches with reclaimers (callbacks that empty them) on a ladder, the ordered attempts to serve a
// refused request.
class ReclaimersTest : public LadderTest {
 protected:
  ReclaimersTest() { reclaimers = &all; }
  ~ReclaimersTest() override {
    // Lets reclaimers return that are still in wait_to_be_let_go().
    release();
    process.wait_until_none_runs();
  }
  // Makes a cache, which lives as long as the test.
  Cache& make() { return caches.emplace_back(); }
  // Registers the cache's reclaimer. `name`: its name in the report. `modules`: comma-separated
  // list of libraries for whose requests it is not called. Returns its id; 0 if it was refused.
  int add(std::string_view name, Cache& cache, std::string_view modules = "") {
    ids.push_back(all.add(name, modules, Cache::reclaim, &cache));
    return ids.back();
  }
  // Waits until release() is called, and returns 0: for reclaimers that do not return.
  std::size_t wait_to_be_let_go() {
    wait_until("release() is called", [this] { return let_go.load(); });
    return 0;
  }
  // Lets all reclaimers return that are in wait_to_be_let_go().
  void release() { let_go = true; }
  // Makes each wait of the requesting thread run out of time, but only after the cache's reclaimer
  // was called.
  void run_out_of_time_in(const Cache& cache) {
    clock.has_time_passed_waiting = [&cache] {
      wait_until("the reclaimer is called", [&cache] { return cache.calls != 0; });
      return true;
    };
  }
  // Makes the calling thread call release() in its first wait. No wait runs out of time. To be
  // called before other threads wait.
  void release_in_first_wait() {
    clock.has_time_passed_waiting = [this, climbing = std::this_thread::get_id()] {
      if (std::this_thread::get_id() == climbing) release();
      return false;
    };
  }

  std::deque<Cache> caches;        // the caches that make() has made
  Reclaimers all{process, clock};  // the registered reclaimers
  // Settings of a ladder that calls the reclaimers, for 100 ms together at most.
  Settings with_reclaimers{.pool = PoolMode::rescue, .sync_timeout_ns = 100'000'000};
  std::atomic<bool> let_go{false};  // true once release() was called
  std::vector<int> ids;             // results of add(), in order
};

}  // namespace cuwarden::rescue
