// The state of the simulated driver in this process, and what the entry points share.
//
// Lock rule: one mutex guards everything; nobody sleeps or calls the program while
// holding it. The object is made at the first call and never destroyed, since calls
// arrive until the very end of the process.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "tools/simulated_gpu/settings.hpp"
#include "tools/simulated_gpu/state.hpp"

namespace cuwarden::simulated_gpu {

struct Simulator {
  Simulator();

  const Settings settings;
  std::mutex mutex;
  std::condition_variable callbacks_done;
  std::atomic<bool> initialised{false};  // also read without the lock
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

  std::map<CUdeviceptr, std::size_t> reservations;  // of cuMemAddressReserve

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

// Whether calls are refused: the process's exit handlers began, or this is a fork's child.
bool deinitialised();
bool forked_child();
void arm_end_of_process();  // once, inside cuInit

// What belongs to the calling thread. Trivially destructible: atexit handlers run after
// the destructors of thread-locals, and may still call.
struct ThreadState {
  static constexpr int kDepth = 128;
  Context* stack[kDepth];
  int depth;
  bool per_thread_default;  // inside a call by its _ptsz or _ptds name
  CUstreamCaptureMode capture_mode;
};
ThreadState& thread_state();

// The current context of the thread; CUDA_ERROR_INVALID_CONTEXT without one,
// CUDA_ERROR_CONTEXT_IS_DESTROYED where it is gone.
CUresult current_context(Context*& context);

}  // namespace cuwarden::simulated_gpu
