// The simulator object, the state of threads, and the end of the process.
#include "tools/simulated_gpu/device/simulator.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <iterator>
#include <new>
#include <thread>

#include "tools/simulated_gpu/device/pool.hpp"

namespace cuwarden::simulated_gpu {
namespace {

constinit std::atomic<bool> ended{false};
constinit std::atomic<bool> in_child{false};
constinit thread_local ThreadState state{};

}  // namespace

Simulator::Simulator() : settings(read_settings()) {
  if (!settings.shared.empty()) share.join(settings.shared);
  for (const int board : settings.visible) {
    devices.push_back(std::make_unique<Device>(static_cast<int>(devices.size()), board,
                                               settings.memory, settings.other_process, share));
    Device& made = *devices.back();
    const auto limit = settings.memory_limits.find(made.ordinal);
    if (limit != settings.memory_limits.end()) made.process_limit = limit->second;
    if (settings.cgroup_limit != 0) made.cgroup_limit = settings.cgroup_limit;
    made.page_cache = settings.page_cache.value_or(0);
    made.default_pool = pools.add(std::make_unique<MemoryPool>(&made));
    made.default_pool->is_default = true;
    made.current_pool = made.default_pool;
  }
}

Simulator& simulator() {
  alignas(Simulator) static char storage[sizeof(Simulator)];
  static Simulator* const made = new (storage) Simulator;
  return *made;
}

bool deinitialised() { return ended.load(std::memory_order_relaxed); }

bool forked_child() { return in_child.load(std::memory_order_relaxed); }

void arm_end_of_process() {
  // exit() runs handlers that the program registers after this point before this one.
  std::atexit([] {
    // The driver gives back contexts and memory here. Other threads go on meanwhile.
    std::this_thread::sleep_for(simulator().settings.end_time);
    ended.store(true);
  });
  pthread_atfork(nullptr, nullptr, [] { in_child.store(true); });
}

ThreadState& thread_state() { return state; }

CUresult current_context(Context*& context) {
  if (state.depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  context = state.stack[state.depth - 1];
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return context->destroyed ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

Range& RangeTable::insert(const Range& range) {
  Range& kept = ranges_.insert_or_assign(range.start, range).first->second;
  kept.buffer_id = next_buffer_id_++;
  return kept;
}

Range* RangeTable::at(CUdeviceptr start) {
  const auto found = ranges_.find(start);
  return found == ranges_.end() ? nullptr : &found->second;
}

Range* RangeTable::around(CUdeviceptr address) {
  auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return nullptr;
  Range& range = std::prev(next)->second;
  return address - range.start < (range.requested > 0 ? range.requested : 1) ? &range : nullptr;
}

bool RangeTable::overlaps(CUdeviceptr start, std::size_t size) {
  const auto next = ranges_.lower_bound(start);
  if (next != ranges_.end() && next->first < start + size) return true;
  return around(start) != nullptr;
}

}  // namespace cuwarden::simulated_gpu
