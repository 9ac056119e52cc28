// Queues work on streams and waits for them.
#include "tools/simulated_gpu/device/streams.hpp"

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "tools/simulated_gpu/device/device_memory.hpp"
#include "tools/simulated_gpu/device/graphs.hpp"
#include "tools/simulated_gpu/device/pool.hpp"

namespace cuwarden::simulated_gpu {
namespace {

template <typename Visit>
void for_each_stream(const Context& context, Visit visit) {
  visit(context.legacy);
  for (const auto& [thread, stream] : context.per_thread) visit(*stream);
  for (const Stream* stream : context.streams) visit(*stream);
}

// Calls visit(capture) for each capture of a blocking stream, if `stream` is the legacy default
// stream of the same context.
template <typename Visit>
void for_each_implicit_capture(const Stream& stream, Visit visit) {
  if (&stream != &stream.context->legacy) return;
  for_each_stream(*stream.context, [&](const Stream& other) {
    if (other.capture && (other.flags & CU_STREAM_NON_BLOCKING) == 0) visit(*other.capture);
  });
}

template <typename Busy>
void wait_until_idle(std::unique_lock<std::mutex>& lock, Busy busy) {
  for (;;) {
    const auto [moment, callbacks] = busy();
    if (callbacks > 0) {
      simulator().callbacks_done.wait(lock);
    } else if (moment > Clock::now()) {
      sleep_until(lock, moment);
    } else {
      return;
    }
  }
}

}  // namespace

std::unique_ptr<Stream> make_stream(Context& context, unsigned flags, int priority) {
  auto stream = std::make_unique<Stream>();
  stream->context = &context;
  stream->flags = flags;
  stream->priority = priority;
  stream->id = simulator().next_id++;
  return stream;
}

CUresult find_stream(Context& context, CUstream handle, Stream*& stream) {
  if (handle == nullptr)
    handle = thread_state().per_thread_default ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  if (handle == CU_STREAM_LEGACY) {
    stream = &context.legacy;
    return CUDA_SUCCESS;
  }
  if (handle == CU_STREAM_PER_THREAD) {
    auto& mine = context.per_thread[gettid()];
    if (!mine) mine = make_stream(context, 0, 0);
    stream = mine.get();
    return CUDA_SUCCESS;
  }
  stream = simulator().streams.find(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return stream->context->destroyed ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

Clock::time_point busy_until(const Context& context) {
  Clock::time_point latest{};
  for_each_stream(context, [&](const Stream& s) { latest = std::max(latest, s.busy_until); });
  return latest;
}

bool invalidate_captures(const Context& context) {
  bool any = false;
  for_each_stream(context, [&](const Stream& s) {
    if (s.capture) any = s.capture->invalidated = true;
  });
  return any;
}

bool is_implicitly_captured(const Stream& stream) {
  bool any = false;
  for_each_implicit_capture(stream, [&](Capture&) { any = true; });
  return any;
}

bool invalidate_implicit_captures(const Stream& stream) {
  bool any = false;
  for_each_implicit_capture(stream, [&](Capture& capture) { any = capture.invalidated = true; });
  return any;
}

void enqueue(Stream& stream, Clock::duration duration) {
  Context& context = *stream.context;
  Clock::time_point start = std::max(Clock::now(), stream.busy_until);
  if (&stream == &context.legacy) {
    for_each_stream(context, [&](const Stream& other) {
      if ((other.flags & CU_STREAM_NON_BLOCKING) == 0) start = std::max(start, other.busy_until);
    });
  } else if ((stream.flags & CU_STREAM_NON_BLOCKING) == 0) {
    start = std::max(start, context.legacy.busy_until);
  }
  stream.busy_until = start + duration;
}

void sleep_until(std::unique_lock<std::mutex>& lock, Clock::time_point moment) {
  if (moment <= Clock::now()) return;
  lock.unlock();
  std::this_thread::sleep_until(moment);
  lock.lock();
}

bool idle(const Stream& stream) {
  return stream.running_callbacks == 0 && stream.busy_until <= Clock::now();
}

void observe_frees(Stream& stream) {
  Context& context = *stream.context;
  for (MemoryPool* pool : all_memory_pools()) {
    pool->observe(&stream);
    pool->trim(pool->release_threshold);
  }
  auto& deferred = context.deferred;
  const auto reached = std::partition(deferred.begin(), deferred.end(),
                                      [&](const DeferredFree& f) { return f.stream != &stream; });
  for (auto at = reached; at != deferred.end(); ++at) {
    simulator().ranges.insert(at->range);
    release_range(at->range);
  }
  deferred.erase(reached, deferred.end());
}

void observe_frees_before(Context& context, Clock::time_point moment) {
  const auto observe = [moment](Stream& stream) {
    if ((stream.flags & CU_STREAM_NON_BLOCKING) == 0 && stream.last_free <= moment)
      observe_frees(stream);
  };
  for (auto& [thread, stream] : context.per_thread) observe(*stream);
  for (Stream* stream : context.streams) observe(*stream);
}

void wait_for(std::unique_lock<std::mutex>& lock, Stream& stream) {
  wait_until_idle(lock, [&] {
    // The legacy stream also waits for the work of all blocking streams.
    Clock::time_point moment = stream.busy_until;
    if (&stream == &stream.context->legacy) {
      for_each_stream(*stream.context, [&](const Stream& other) {
        if ((other.flags & CU_STREAM_NON_BLOCKING) == 0)
          moment = std::max(moment, other.busy_until);
      });
    }
    return std::pair(moment, stream.running_callbacks);
  });
  if (stream.destroyed || stream.context->destroyed) return;
  observe_frees(stream);
  if (&stream == &stream.context->legacy) observe_frees_before(*stream.context, Clock::now());
}

void wait_for_work(std::unique_lock<std::mutex>& lock, Context& context) {
  wait_until_idle(lock, [&] {
    unsigned callbacks = 0;
    for_each_stream(context, [&](const Stream& s) { callbacks += s.running_callbacks; });
    return std::pair(busy_until(context), callbacks);
  });
}

void wait_for(std::unique_lock<std::mutex>& lock, Context& context) {
  wait_for_work(lock, context);
  if (context.destroyed) return;
  observe_frees(context.legacy);
  for (auto& [thread, stream] : context.per_thread) observe_frees(*stream);
  for (Stream* stream : context.streams) observe_frees(*stream);
}

void wait_in_free(std::unique_lock<std::mutex>& lock, Context& context) {
  ++context.frees_waiting;
  wait_for(lock, context);
  --context.frees_waiting;
}

void wait_for_frees(std::unique_lock<std::mutex>& lock, const Context& context) {
  while (context.frees_waiting != 0) sleep_until(lock, Clock::now() + std::chrono::milliseconds(1));
}

}  // namespace cuwarden::simulated_gpu
