// Time on the device. A stream is busy until a moment; work is put behind it, waiting
// sleeps until it, and only a wait makes the driver notice that memory freed in stream
// order can be had again.
#pragma once

#include <mutex>

#include "tools/simulated_gpu/simulator.hpp"

namespace cuwarden::simulated_gpu {

// The stream behind a handle: null is the legacy or the thread's default stream.
// CUDA_ERROR_INVALID_HANDLE or CUDA_ERROR_CONTEXT_IS_DESTROYED otherwise.
CUresult find_stream(Context& context, CUstream handle, Stream*& stream);

// When everything queued on the stream or in the context is done.
Clock::time_point busy_until(const Context& context);

// Those of its streams; whether there are any.
bool invalidate_captures(const Context& context);

// Queues work that takes `duration`; honours the legacy default stream's barriers.
void enqueue(Stream& stream, Clock::duration duration);

// Sleeps (without the lock) until the stream, the context or the whole device is idle,
// and then lets go of what was freed there.
void wait_for(std::unique_lock<std::mutex>& lock, Stream& stream);
void wait_for(std::unique_lock<std::mutex>& lock, Context& context);
// The same in a free: as long as it waits, linear memory is allocated to nobody.
void wait_in_free(std::unique_lock<std::mutex>& lock, Context& context);
void wait_for_frees(std::unique_lock<std::mutex>& lock, const Context& context);
void sleep_until(std::unique_lock<std::mutex>& lock, Clock::time_point moment);

bool idle(const Stream& stream);
// The frees of this stream have been reached.
void observe_frees(Stream& stream);
// Those that blocking streams were given before this moment of the legacy stream, which came after
// them (cuda.h: interactions with the null stream create stream ordered dependencies).
void observe_frees_before(Context& context, Clock::time_point moment);

std::unique_ptr<Stream> make_stream(Context& context, unsigned flags, int priority);

}  // namespace cuwarden::simulated_gpu
