// Time on the device. A stream is busy until a moment. Work is queued behind that moment, and a
// wait sleeps until it. Only a wait makes the driver notice that memory freed in stream order can
// be reused.
#pragma once

#include <mutex>

#include "tools/simulated_gpu/device/simulator.hpp"

namespace cuwarden::simulated_gpu {

// Finds the stream behind a handle; null is the legacy stream or the thread's default stream.
// Returns CUDA_ERROR_INVALID_HANDLE or CUDA_ERROR_CONTEXT_IS_DESTROYED if there is none.
CUresult find_stream(Context& context, CUstream handle, Stream*& stream);

// Returns the moment at which everything queued in the context is done.
Clock::time_point busy_until(const Context& context);

// Invalidates the captures of the context's streams. Returns true if there were any.
bool invalidate_captures(const Context& context);

// Queues work that takes `duration`, behind the legacy default stream's barriers.
void enqueue(Stream& stream, Clock::duration duration);

// Sleeps, without the lock, until the stream or the context is idle. Then releases memory that was
// freed there.
void wait_for(std::unique_lock<std::mutex>& lock, Stream& stream);
void wait_for(std::unique_lock<std::mutex>& lock, Context& context);
// Waits as wait_for() does, inside a free: until it is done, no linear memory is allocated.
void wait_in_free(std::unique_lock<std::mutex>& lock, Context& context);
// Waits until no free is waiting in the context.
void wait_for_frees(std::unique_lock<std::mutex>& lock, const Context& context);
// Sleeps, without the lock, until the moment has come.
void sleep_until(std::unique_lock<std::mutex>& lock, Clock::time_point moment);

bool idle(const Stream& stream);
// Releases memory whose frees this stream has reached.
void observe_frees(Stream& stream);
// Releases memory whose frees blocking streams have reached before this moment. The legacy stream
// came after them at that moment (cuda.h: interactions with the null stream create stream ordered
// dependencies).
void observe_frees_before(Context& context, Clock::time_point moment);

std::unique_ptr<Stream> make_stream(Context& context, unsigned flags, int priority);

}  // namespace cuwarden::simulated_gpu
