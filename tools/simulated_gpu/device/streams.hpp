// Time on the simulated device. Each stream is busy until a moment, and work that is queued moves
// that moment. A wait for the stream sleeps until the moment. The driver notices only in a wait
// that memory which was freed in stream order (cuMemFreeAsync) can be reused.
#pragma once

#include <mutex>

#include "tools/simulated_gpu/device/simulator.hpp"

namespace cuwarden::simulated_gpu {

// Sets `stream` to the stream that a handle means in the context. A null handle means the legacy
// default stream; inside a call by a _ptsz or _ptds name, the calling thread's own default stream.
// Returns CUDA_ERROR_INVALID_HANDLE if there is no such stream, and CUDA_ERROR_CONTEXT_IS_DESTROYED
// if its context was destroyed.
CUresult find_stream(Context& context, CUstream handle, Stream*& stream);

// Returns the moment at which all work in all streams of the context is done.
Clock::time_point busy_until(const Context& context);

// Invalidates all captures into graphs that are going on in streams of the context: each can only
// be ended, with an error. Returns true if there were any.
bool invalidate_captures(const Context& context);

// Queues work that takes `duration` in the stream. Work in the legacy default stream begins after
// the work of all blocking streams of the context. Work in a blocking stream begins after the work
// of the legacy default stream.
void enqueue(Stream& stream, Clock::duration duration);

// Sleeps until the stream, or each stream of the context, is idle. Then releases the memory that
// was freed in these streams by cuMemFreeAsync. `lock` holds the simulator's lock, which is given
// up while the thread sleeps.
void wait_for(std::unique_lock<std::mutex>& lock, Stream& stream);
void wait_for(std::unique_lock<std::mutex>& lock, Context& context);
// For cuMemFree: sleeps until the context is idle, then releases memory that was freed in its
// streams by cuMemFreeAsync. During the wait, other threads' calls of cuMemAlloc in the context
// wait, too (wait_for_frees()). `lock` holds the simulator's lock, which is given up while the
// thread sleeps.
void wait_in_free(std::unique_lock<std::mutex>& lock, Context& context);
// For cuMemAlloc: waits until no thread is inside wait_in_free(), which cuMemFree calls, for the
// context. `lock` holds the simulator's lock, which is given up while the thread sleeps.
void wait_for_frees(std::unique_lock<std::mutex>& lock, const Context& context);
// Sleeps until the moment has come. `lock` holds the simulator's lock, which is given up while the
// thread sleeps.
void sleep_until(std::unique_lock<std::mutex>& lock, Clock::time_point moment);

// True if all work and all host functions of the stream are done.
bool idle(const Stream& stream);
// Releases all memory that was freed in the stream by cuMemFreeAsync. To be called when the stream
// has reached these frees and the program has synchronised with the stream.
void observe_frees(Stream& stream);
// Releases memory that was freed by cuMemFreeAsync in blocking streams of the context: those that
// have reached their last free by `moment`. To be called after a wait for the legacy default
// stream, which comes after the work of all blocking streams.
void observe_frees_before(Context& context, Clock::time_point moment);

// Makes an idle stream with a new id. The caller enters the stream in the tables and takes device
// memory for it. `flags`: those of cuStreamCreate.
std::unique_ptr<Stream> make_stream(Context& context, unsigned flags, int priority);

}  // namespace cuwarden::simulated_gpu
