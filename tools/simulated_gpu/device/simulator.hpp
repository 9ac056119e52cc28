// The state of the simulated driver in this process, and functions that the driver's exported
// functions (entry points) share.
//
// Lock rule: one mutex, Simulator::mutex, guards everything. No thread sleeps or calls functions of
// the program while it holds the mutex.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "tools/simulated_gpu/device/state.hpp"
#include "tools/simulated_gpu/hardware/settings.hpp"

namespace cuwarden::simulated_gpu {

// The state of the simulated driver. The one object is made at the first call, and never destroyed,
// since calls arrive until the very end of the process.
struct Simulator {
  // Reads the settings and makes the devices that this process sees.
  Simulator();

  const Settings settings;
  std::mutex mutex;  // The simulator's lock, which guards all state.
  // Notified each time a host function that a stream runs (cuLaunchHostFunc) has returned.
  std::condition_variable callbacks_done;
  std::atomic<bool> initialised{false};          // True after cuInit; also read without the lock.
  DeviceShare share;                             // Shares the devices with other processes.
  std::vector<std::unique_ptr<Device>> devices;  // By ordinal.
  Handles<Context> contexts;
  Handles<Stream> streams;
  Handles<Event> events;
  Handles<MemoryPool> pools;
  RangeTable ranges;                               // All device and host memory that was allocated.
  std::size_t pinned_bytes = 0;                    // Page-locked and registered host memory.
  unsigned long long next_id = 1;                  // Id of the next context, stream or capture.
  std::vector<std::shared_ptr<Capture>> captures;  // Captures that have not ended.

  // Sizes of the address ranges that cuMemAddressReserve returned, by start.
  std::map<CUdeviceptr, std::size_t> reservations;

  // True if the address lies in a range of `reservations`.
  bool reserved(CUdeviceptr address) const {
    auto next = reservations.upper_bound(address);
    return next != reservations.begin() && address - (--next)->first < next->second;
  }
  // Returns the device with this ordinal; null if there is none.
  Device* device(CUdevice ordinal) {
    const auto index = static_cast<std::size_t>(ordinal);
    return ordinal >= 0 && index < devices.size() ? devices[index].get() : nullptr;
  }
};

// Returns the one object; the first call makes it.
Simulator& simulator();

// True once the driver's exit handler has run: from then on every call returns
// CUDA_ERROR_DEINITIALIZED.
bool deinitialised();
// True in a child that was forked after cuInit: calls that need a device return
// CUDA_ERROR_NOT_INITIALIZED.
bool forked_child();
// Registers the driver's exit handler and its fork handler. Called once, inside cuInit.
void arm_end_of_process();

// State of a thread. Trivially destructible, because exit handlers of the program run after the
// destructors of thread-local objects and may still call the driver.
struct ThreadState {
  static constexpr int kDepth = 128;  // Most contexts on the stack.
  Context* stack[kDepth];             // The thread's context stack (cuCtxPushCurrent).
  int depth;                          // Number of contexts in `stack`; the last is current.
  // True inside a call of a function whose name ends in _ptsz or _ptds: the default stream is then
  // the thread's own.
  bool per_thread_default;
  // The captures that forbid calls to this thread (cuThreadExchangeStreamCaptureMode).
  CUstreamCaptureMode capture_mode;
};
// Returns the state of the calling thread.
ThreadState& thread_state();

// Sets `context` to the calling thread's current context. Returns CUDA_ERROR_INVALID_CONTEXT if
// there is none, and CUDA_ERROR_CONTEXT_IS_DESTROYED if the context was destroyed.
CUresult current_context(Context*& context);

}  // namespace cuwarden::simulated_gpu
