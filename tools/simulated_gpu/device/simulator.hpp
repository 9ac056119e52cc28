// The state of the simulated driver in this process, and functions that the driver's exported
// functions (entry points) share.
//
// Lock rule: one mutex, Simulator::mutex (the simulator's lock), guards all state. No thread sleeps
// or calls functions of the program while it holds the mutex, unless a rule of CUWARDEN_SIM_FAIL
// asks for that.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "tools/simulated_gpu/device/state.hpp"
#include "tools/simulated_gpu/hardware/settings.hpp"

namespace cuwarden::simulated_gpu {

// The state of the simulated driver in this process. The only object is made at the first call of
// the driver, and never destroyed, since calls arrive until the very end of the process.
struct Simulator {
  // Reads the settings, joins the processes that share the devices (CUWARDEN_SIM_SHARED), and makes
  // the devices that this process sees.
  Simulator();

  // Settings of the simulated GPU, from environment variables CUWARDEN_SIM_*.
  const Settings settings;
  std::mutex mutex;  // The simulator's lock, which guards all state but `settings`.
  // Notified each time a host function that a stream runs (cuLaunchHostFunc) has returned.
  std::condition_variable callbacks_done;
  // True after cuInit; also read without the simulator's lock.
  std::atomic<bool> initialised{false};
  DeviceShare share;  // Shares the devices with other processes (CUWARDEN_SIM_SHARED).
  // Devices that the program can use, by CUDA ordinal.
  std::vector<std::unique_ptr<Device>> devices;
  Handles<Context> contexts;             // Live contexts of the process.
  Handles<GreenContext> green_contexts;  // Live green contexts of the process.
  Handles<Stream> streams;               // Live streams that the program has made.
  Handles<Event> events;                 // Live events of the process.
  Handles<MemoryPool> pools;             // Live memory pools (CUmemoryPool) of the process.
  // Memory pools that the program destroyed while it had memory of theirs. A pool leaves the list
  // once the last of that memory is freed (all_memory_pools()).
  std::vector<MemoryPool*> ending_pools;
  // Live memory that the program has allocated, mapped or registered. This includes memory opened
  // from other processes, variables of modules, and memory of launched graphs.
  RangeTable ranges;
  std::size_t pinned_bytes = 0;    // Bytes of live page-locked and registered host memory.
  unsigned long long next_id = 1;  // Id of the next context, stream or capture.
  // Captures of streams into graphs that have not ended.
  std::vector<std::shared_ptr<Capture>> captures;

  // Bytes of each address range that the program has reserved by cuMemAddressReserve and not given
  // back, by the range's start.
  std::map<CUdeviceptr, std::size_t> reservations;
  // Starts of the address ranges in `reservations`. The simulated driver never reads this list. It
  // has the list because the real driver has one (measured on an H200 with driver 580), which
  // cuwarden's search must not take for pointers of the program. The list is written anew whenever
  // the number of reservations grows to a power of two; in between it is stale.
  std::vector<CUdeviceptr> listed_ranges;

  // True if the address lies in a range that the program has reserved by cuMemAddressReserve.
  bool reserved(CUdeviceptr address) const {
    auto next = reservations.upper_bound(address);
    return next != reservations.begin() && address - (--next)->first < next->second;
  }
  // Returns the simulated device with this CUDA ordinal; null if there is none.
  Device* device(CUdevice ordinal) {
    const auto index = static_cast<std::size_t>(ordinal);
    return ordinal >= 0 && index < devices.size() ? devices[index].get() : nullptr;
  }
};

// Returns the state of the simulated driver in this process; the first call makes it.
Simulator& simulator();

// True once the simulated driver's exit handler has run: from then on every exported function of
// the driver returns CUDA_ERROR_DEINITIALIZED.
bool deinitialised();
// True in a child process that was forked after cuInit. There, exported functions of the simulated
// driver that need a device return CUDA_ERROR_NOT_INITIALIZED.
bool forked_child();
// Makes the driver refuse calls after the process's exit handlers and in forked children. Registers
// an exit handler, which makes deinitialised() true, and a fork handler, which makes forked_child()
// true in the child. Called once, inside cuInit.
void arm_end_of_process();

// The simulated driver's state of one thread. Trivially destructible, because exit handlers of the
// program run after the destructors of thread-local objects and may still call the driver.
struct ThreadState {
  static constexpr int kDepth = 128;  // Most contexts that a thread's context stack may have.
  // The thread's context stack (cuCtxPushCurrent); null entries stand for no context.
  Context* stack[kDepth];
  int depth;  // Number of entries in `stack`; the last one is the thread's current context.
  // True while the thread is in a function whose name ends in _ptsz or _ptds: the default stream
  // (null) is then the thread's own.
  bool per_thread_default;
  // The thread's capture mode (cuThreadExchangeStreamCaptureMode). It decides which captures make
  // calls of this thread fail: GLOBAL: its own ones, and the GLOBAL ones of other threads.
  // THREAD_LOCAL: its own ones. RELAXED: none.
  CUstreamCaptureMode capture_mode;
};
// Returns the simulated driver's state of the calling thread.
ThreadState& thread_state();

// Sets `context` to the calling thread's current context, and returns CUDA_SUCCESS. Returns
// CUDA_ERROR_INVALID_CONTEXT if there is none, and CUDA_ERROR_CONTEXT_IS_DESTROYED if that context
// was destroyed; then `context` must not be used.
CUresult current_context(Context*& context);

}  // namespace cuwarden::simulated_gpu
