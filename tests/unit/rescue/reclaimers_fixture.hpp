// Caches that a test registers as reclaimers, on the ladder of fake_ladder.hpp.
#pragma once

#include <atomic>
#include <deque>
#include <thread>

#include "runtime_hooks/rescue/reclaimers.hpp"
#include "tests/unit/rescue/fake_ladder.hpp"

namespace cuwarden::rescue {
using Failure = serving::ReclaimerFailure;
using Failures = std::vector<std::pair<std::string, Failure>>;

// A cache with a reclaimer: a test says how the reclaimer acts, and sees how it was called.
struct Cache {
  std::function<std::size_t()> give_back = [] { return std::size_t{4096}; };
  std::atomic<int> calls{0};
  int device = -2;
  std::size_t bytes = 0;
  bool was_reclaiming = false;
  CUstreamCaptureMode capture_mode{};  // of the thread that called
  std::thread::id thread;
  static std::size_t reclaim(int device, std::size_t bytes, void* argument) {
    Cache& cache = *static_cast<Cache*>(argument);
    cache.device = device;
    cache.bytes = bytes;
    cache.was_reclaiming = is_reclaiming();
    cache.capture_mode = rescue::capture_mode;
    cache.thread = std::this_thread::get_id();
    ++cache.calls;
    cache.calls.notify_all();
    return cache.give_back();
  }
};

class ReclaimersTest : public LadderTest {
 protected:
  ~ReclaimersTest() override {
    // Lets a call return that no thread waits for any more.
    release();
    process.wait_until_none_runs();
  }
  Cache& make() { return caches.emplace_back(); }
  int add(std::string_view name, Cache& cache, std::string_view modules = "") {
    ids.push_back(all.add(name, modules, Cache::reclaim, &cache));
    return ids.back();
  }
  std::size_t wait_to_be_let_go() {
    let_go.wait(false);
    return 0;
  }
  void release() {
    let_go = true;
    let_go.notify_all();
  }
  // Time runs out in each wait of the climbing thread once the cache has been called.
  void run_out_of_time_in(const Cache& cache) {
    clock.has_time_passed_waiting = [&cache] {
      cache.calls.wait(0);
      return true;
    };
  }
  // Has the climbing thread release the caches in its first wait; time passes in none. To be called
  // before other threads wait.
  void release_in_first_wait() {
    clock.has_time_passed_waiting = [this, climbing = std::this_thread::get_id()] {
      if (std::this_thread::get_id() == climbing) release();
      return false;
    };
  }

  std::deque<Cache> caches;
  Reclaimers all{process, clock};
  Settings with_reclaimers{.enabled = true, .sync_timeout_ns = 100'000'000, .reclaimers = &all};
  std::atomic<bool> let_go{false};
  std::vector<int> ids;
};

}  // namespace cuwarden::rescue
