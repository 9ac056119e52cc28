// Time on the simulated device. Each stream stores the moment until which it is busy; work that is
// queued puts that moment later. A wait for the stream sleeps until the moment. Only a wait makes
// memory that was freed in stream order (cuMemFreeAsync) available to other streams.
#pragma once

#include <mutex>

#include "tools/simulated_gpu/device/simulator.hpp"

namespace cuwarden::simulated_gpu {

// Sets `stream` to the stream of a handle that the program has passed. A null handle means the
// legacy default stream of `context`, or the calling thread's own default stream if the called
// function's name ends in _ptsz or _ptds. Handles of streams of other contexts are found, too.
// Returns CUDA_ERROR_INVALID_HANDLE if there is no such stream, and CUDA_ERROR_CONTEXT_IS_DESTROYED
// if the stream's context was destroyed; then `stream` must not be used.
CUresult find_stream(Context& context, CUstream handle, Stream*& stream);

// Returns the moment at which all work that is queued in the streams of the context is done; it may
// have passed. Host functions (cuLaunchHostFunc) do not count.
Clock::time_point busy_until(const Context& context);

// Invalidates each capture into a graph that is going on in a stream of the context: the program
// can then only end it, with an error. Returns true if there was such a capture.
bool invalidate_captures(const Context& context);

// True if the stream is the legacy default stream, and a blocking stream of its context is being
// captured into a graph. Work of the two would have to wait for each other, so the driver then
// refuses all work in the legacy stream.
bool is_implicitly_captured(const Stream& stream);
// If `stream` is the legacy default stream, invalidates the captures of all blocking streams of its
// context. The program can then only end them, with an error. Does nothing for any other stream.
// Returns true if there was such a capture.
bool invalidate_implicit_captures(const Stream& stream);

// Queues work in the stream, which keeps the stream busy for `duration`. Work in the legacy default
// stream begins after the work of all blocking streams of the context. Work in a blocking stream
// begins after the work of the legacy default stream.
void enqueue(Stream& stream, Clock::duration duration);

// Sleeps until all work and host functions of the stream are done. Then releases the memory that
// was freed in it by cuMemFreeAsync. For the legacy default stream, also waits for the work of all
// blocking streams of its context, and releases the memory freed in them; does not wait for their
// host functions. `lock`: holds Simulator::mutex before and after the call; released while the
// thread sleeps. Also returns if another thread destroys the stream meanwhile, which the caller
// then must not use any more.
void wait_for(std::unique_lock<std::mutex>& lock, Stream& stream);
// Sleeps until each stream of the context is idle. Memory that was freed in these streams by
// cuMemFreeAsync stays pending, as after cuArrayDestroy (measured). `lock`: holds Simulator::mutex
// before and after the call; released while the thread sleeps. Also returns if another thread
// destroys the context meanwhile, which the caller then must not use any more.
void wait_for_work(std::unique_lock<std::mutex>& lock, Context& context);
// Sleeps until each stream of the context is idle. Then releases the memory that was freed in these
// streams by cuMemFreeAsync. `lock`: holds Simulator::mutex before and after the call; released
// while the thread sleeps. Also returns if another thread destroys the context meanwhile, which the
// caller then must not use any more.
void wait_for(std::unique_lock<std::mutex>& lock, Context& context);
// For cuMemFree: sleeps until the context is idle, then releases memory that was freed in its
// streams by cuMemFreeAsync. During the wait, other threads' calls of cuMemAlloc in the context
// wait, too (wait_for_frees()). `lock`: holds Simulator::mutex before and after the call; released
// while the thread sleeps.
void wait_in_free(std::unique_lock<std::mutex>& lock, Context& context);
// For cuMemAlloc: waits until no other thread is inside a cuMemFree that waits for the context to
// be idle (wait_in_free()). `lock`: holds Simulator::mutex before and after the call; released
// while the thread sleeps.
void wait_for_frees(std::unique_lock<std::mutex>& lock, const Context& context);
// Sleeps until `moment`; returns at once if it has passed. `lock`: holds Simulator::mutex before
// and after the call; released while the thread sleeps.
void sleep_until(std::unique_lock<std::mutex>& lock, Clock::time_point moment);

// True if all work and all host functions of the stream are done.
bool idle(const Stream& stream);
// Releases all memory that was freed in the stream by cuMemFreeAsync, and lets each memory pool
// give free chunks back to the device down to its release threshold. Callers make sure that the
// stream has reached these frees and that the program has synchronised with the stream.
void observe_frees(Stream& stream);
// Calls observe_frees() for each blocking stream of the context that has reached its last
// cuMemFreeAsync by `moment`: the freed memory is released. To be called after a wait for the
// legacy default stream, since that is also a wait for all blocking streams.
void observe_frees_before(Context& context, Clock::time_point moment);

// Returns a new, idle stream of the context. The caller enters it in Simulator::streams and
// Context::streams, and takes kStreamCost bytes of device memory for it. `flags` and `priority`:
// those of cuStreamCreateWithPriority; a priority from -5, the highest, to 0.
std::unique_ptr<Stream> make_stream(Context& context, unsigned flags, int priority);

}  // namespace cuwarden::simulated_gpu
