// Caches that a test registers, on the ladder of fake_ladder.hpp.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <thread>

#include "runtime_hooks/rescue/reclaimers.hpp"
#include "tests/unit/rescue/fake_ladder.hpp"

namespace cuwarden::rescue {
using Trouble = Reclaimers::Trouble;
using std::chrono::milliseconds;

inline bool threads_can_start = true;
inline bool start(void* (*work)(void*), void* argument) noexcept {
  if (!threads_can_start) return false;
  std::thread([=] { work(argument); }).detach();
  return true;
}

// What a reclaimer does, and what it was called with.
struct Cache {
  std::function<std::size_t()> give_back = [] { return std::size_t{4096}; };
  std::atomic<int> calls{0};
  int device = -2;
  std::size_t bytes = 0;
  bool was_reclaiming = false;
  std::thread::id thread;
  static std::size_t reclaim(int device, std::size_t bytes, void* argument) {
    Cache& cache = *static_cast<Cache*>(argument);
    cache.device = device;
    cache.bytes = bytes;
    cache.was_reclaiming = is_reclaiming();
    cache.thread = std::this_thread::get_id();
    ++cache.calls;
    return cache.give_back();
  }
};

inline std::vector<std::pair<std::string, Trouble>> troubles;

class ReclaimersTest : public LadderTest {
 protected:
  ReclaimersTest() {
    clock = &system_clock;  // reclaimers have threads of their own
    troubles.clear();
    threads_can_start = true;
  }
  ~ReclaimersTest() override {
    // A call that is left behind ends with the test.
    let_go = true;
    for (const int id : ids) all.remove(id, now_ns() + 5'000'000'000);
  }
  Cache& make() { return caches.emplace_back(); }
  int add(std::string_view name, Cache& cache, std::string_view modules = "") {
    ids.push_back(all.add(name, modules, Cache::reclaim, &cache));
    return ids.back();
  }
  std::size_t wait_to_be_let_go() {
    while (!let_go) std::this_thread::sleep_for(milliseconds(1));
    return 0;
  }

  std::deque<Cache> caches;
  Reclaimers all{start};
  Settings with_reclaimers{.enabled = true,
                           .sync_timeout_ns = 100'000'000,
                           .reclaimers = &all,
                           .trouble = [](std::string_view name, Trouble trouble) noexcept {
                             troubles.emplace_back(name, trouble);
                           }};
  std::atomic<bool> let_go{false};
  std::vector<int> ids;
};

}  // namespace cuwarden::rescue
