// The state of the simulated driver in this process, and functions that the entry points share.
//
// Lock rule: one mutex guards everything. No thread sleeps or calls the program while it holds the
// mutex. The object is made at the first call and never destroyed, because calls arrive until the
// very end of the process.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "tools/simulated_gpu/device/state.hpp"
#include "tools/simulated_gpu/hardware/settings.hpp"

namespace cuwarden::simulated_gpu {

struct Simulator {
  Simulator();

  const Settings settings;
  std::mutex mutex;
  std::condition_variable callbacks_done;
  std::atomic<bool> initialised{false};  // True after cuInit; also read without the lock.
  DeviceShare share;
  std::vector<std::unique_ptr<Device>> devices;
  Handles<Context> contexts;
  Handles<Stream> streams;
  Handles<Event> events;
  Handles<MemoryPool> pools;
  RangeTable ranges;
  std::size_t pinned_bytes = 0;
  unsigned long long next_id = 1;
  std::vector<std::shared_ptr<Capture>> captures;

  // Sizes of the ranges from cuMemAddressReserve, by start.
  std::map<CUdeviceptr, std::size_t> reservations;

  bool reserved(CUdeviceptr address) const {
    auto next = reservations.upper_bound(address);
    return next != reservations.begin() && address - (--next)->first < next->second;
  }
  Device* device(CUdevice ordinal) {
    const auto index = static_cast<std::size_t>(ordinal);
    return ordinal >= 0 && index < devices.size() ? devices[index].get() : nullptr;
  }
};

Simulator& simulator();

// True if calls are refused: the process's exit handlers have begun (deinitialised), or this is a
// forked child.
bool deinitialised();
bool forked_child();
void arm_end_of_process();  // Called once, inside cuInit.

// State of the calling thread. Trivially destructible: atexit handlers run after the destructors of
// thread-locals, and may still call.
struct ThreadState {
  static constexpr int kDepth = 128;
  Context* stack[kDepth];
  int depth;
  bool per_thread_default;  // True inside a call by a _ptsz or _ptds name.
  CUstreamCaptureMode capture_mode;
};
ThreadState& thread_state();

// Finds the thread's current context. Returns CUDA_ERROR_INVALID_CONTEXT if there is none,
// CUDA_ERROR_CONTEXT_IS_DESTROYED if it was destroyed.
CUresult current_context(Context*& context);

}  // namespace cuwarden::simulated_gpu
