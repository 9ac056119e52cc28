#include "runtime_hooks/rescue/rungs/pending_frees.hpp"

#include <optional>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/driver/context_idle.hpp"
#include "runtime_hooks/driver/device_reading.hpp"
#include "runtime_hooks/driver/inside_context.hpp"
#include "runtime_hooks/driver/submission_gate.hpp"

namespace cuwarden::rescue {
namespace {

// The default stream's handle is null in each context. Its key is the context's handle with the
// lowest bit set, which no stream handle has; CU_STREAM_LEGACY is the same stream. All threads' own
// default streams of a context share one key, the context's handle with the next bit set.
constexpr std::uint64_t of_context = 1, of_threads = 2;
bool is_of_default(std::uint64_t key) { return (key & (of_context | of_threads)) != 0; }
bool is_default(CUstream stream) { return stream == nullptr || stream == CU_STREAM_LEGACY; }
std::uint64_t key_of(CUstream stream, ContextId context) {
  if (stream == CU_STREAM_PER_THREAD) return context.value | of_threads;
  return is_default(stream) ? context.value | of_context : reinterpret_cast<std::uint64_t>(stream);
}
// Longest time that the gate is waited for.
constexpr std::uint64_t patience_ns = 1'000'000;

// The stream that the thread noted last, because most frees are in the stream of the free before.
// Initial-exec, as all thread-local memory of the shim.
struct Last {
  std::uint64_t key = 0;
  std::uint32_t version = 0;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Last last{};

// The thread's frees in its own default stream, as long as no call has synchronised it.
struct OwnStream {
  std::uint64_t context = 0;  // 0: no free is pending
  std::uint32_t first_version =
      0;               // PendingFrees::first_version_ of the object that noted the free
  bool again = false;  // true if memory was freed since an event was put into the stream
};
[[gnu::tls_model("initial-exec")]] constinit thread_local OwnStream own_stream{};

constexpr std::uint64_t several_threads = 1;
std::uint64_t this_thread() { return reinterpret_cast<std::uint64_t>(&own_stream); }
void note_thread(std::atomic<std::uint64_t>& thread) {
  std::uint64_t known = 0;
  if (!thread.compare_exchange_strong(known, this_thread(), relaxed) && known != this_thread())
    thread.store(several_threads, relaxed);
}

}  // namespace

bool PendingFrees::frees_in_own_stream(ContextId context) const noexcept {
  return context.value != 0 && own_stream.context == context.value &&
         own_stream.first_version == first_version_;
}

bool PendingFrees::was_noted_last(CUstream stream) const noexcept {
  return !is_default(stream) && stream != CU_STREAM_PER_THREAD &&
         last.key == reinterpret_cast<std::uint64_t>(stream) &&
         last.version == version_.load(std::memory_order_acquire);
}

void PendingFrees::freed_in(CUstream stream, ContextId context) noexcept {
  if (stream == CU_STREAM_PER_THREAD) {
    if (!frees_in_own_stream(context)) noted_.fetch_add(1, relaxed);
    own_stream = {context.value, first_version_, true};
  }
  const std::uint64_t key = key_of(stream, context);
  // The version is read first: a stream that is removed after this is noted again with its next
  // free.
  const std::uint32_t version = version_.load(std::memory_order_acquire);
  if (last.key == key && last.version == version) return;
  NotedStream* vacant = nullptr;
  for (NotedStream& noted : streams_) {
    const std::uint64_t found = noted.key.load(relaxed);
    if (found == key) {
      if (stream == CU_STREAM_PER_THREAD) note_thread(noted.thread);
      noted.again.store(true, relaxed);
      last = {key, version};
      return;
    }
    if (found == 0 && vacant == nullptr) vacant = &noted;
  }
  std::uint64_t none = 0;
  // Another thread may take the vacant row first: this stream is noted with its next free then.
  if (vacant == nullptr || !vacant->key.compare_exchange_strong(none, key, relaxed)) return;
  if (stream == CU_STREAM_PER_THREAD) note_thread(vacant->thread);
  vacant->again.store(true, relaxed);
  vacant->context.store(context.value, std::memory_order_release);
  noted_.fetch_add(1, relaxed);
  last = {key, version};
}

void PendingFrees::remove(NotedStream& noted, std::uint64_t key) noexcept {
  // A vacant row has the key 0. The load spares other threads an atomic write.
  if (key == 0 || noted.key.load(relaxed) != key) return;
  if (!noted.key.compare_exchange_strong(key, 0, relaxed)) return;
  noted.thread.store(0, relaxed);
  version_.fetch_add(1, relaxed);
}

void PendingFrees::stream_ends(CUstream stream) noexcept {
  const Locked locked(lock_);
  if (!locked) left_.store(true);
  for (NotedStream& noted : streams_) remove(noted, reinterpret_cast<std::uint64_t>(stream));
}

void PendingFrees::context_ends(ContextId context) noexcept {
  const Locked locked(lock_);
  if (!locked) left_.store(true);
  for (NotedStream& noted : streams_) {
    if (context.value == 0 || noted.context.load(std::memory_order_acquire) == context.value)
      remove(noted, noted.key.load(relaxed));
  }
  // The events in a context's streams are destroyed with the context.
  for (Elsewhere& each : elsewhere_)
    if (locked && (context.value == 0 || each.context == context)) each = {};
}

void PendingFrees::capture_begins() noexcept {
  if (const Locked locked(lock_); !locked) left_.store(true);
}

// Keeps streams from joining captures for the length of a scope, if captures are in progress at its
// beginning.
class PendingFrees::AwaitedEvents::NoneJoins {
 public:
  NoneJoins(const tracking::Captures& captures, Clock& clock) noexcept
      : captures_(captures), any_(captures.any()) {
    if (any_) closed_.emplace(patience_ns, clock);
  }
  // True if an event in the stream does not become part of a capture. The caller holds the lock,
  // for which a capture that begins waits.
  bool can_take_event(const driver::RealDriver& real, CUstream stream) const noexcept {
    if (!any_) return !captures_.any();
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return *closed_ && real.cuStreamIsCapturing != nullptr &&
           real.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
           status == CU_STREAM_CAPTURE_STATUS_NONE;
  }

 private:
  const tracking::Captures& captures_;
  const bool any_;
  std::optional<driver::GateClosed> closed_;
};

PendingFrees::AwaitedEvents::AwaitedEvents(PendingFrees& pending, const driver::RealDriver& real,
                                           const tracking::LiveContexts& contexts,
                                           ContextId current, DeviceOrdinal device, Clock& clock)
    : pending_(pending),
      real_(real),
      contexts_(contexts),
      current_(current),
      device_(device),
      clock_(clock) {
  can_use_events_ = real.cuEventCreate != nullptr && real.cuEventRecord != nullptr &&
                    real.cuEventQuery != nullptr && real.cuEventSynchronize != nullptr &&
                    real.cuEventDestroy_v2 != nullptr;
  if (!can_use_events_) return;
  const driver::RelaxedCaptures harmless(real);
  const NoneJoins none_joins(pending.captures_, clock);
  if (pending.frees_in_own_stream(current)) {
    const Locked locked(pending.lock_);
    if (!locked || !pending.may_ask()) return;
    if (!leaves_out(none_joins, CU_STREAM_PER_THREAD)) {
      own_stream.again = false;
      if (!put(CU_STREAM_PER_THREAD, nullptr, key_of(CU_STREAM_PER_THREAD, current))) return;
    }
  }
  each_stream([&](NotedStream& noted, std::uint64_t key, ContextId context) {
    if (context != current) return true;
    if (!is_of_default(key)) {
      const auto stream = reinterpret_cast<CUstream>(key);
      return leaves_out(none_joins, stream) || put(stream, &noted, key);
    }
    // If only this thread has freed memory in default streams, the event in its own stream is
    // enough.
    has_defaults_ = has_defaults_ || !pending_.frees_in_own_stream(current) ||
                    noted.thread.load(relaxed) != this_thread();
    return true;
  });
}

// Calls visit(row, key, context) for each noted stream, with the lock held, until it returns false.
template <class Visit>
void PendingFrees::AwaitedEvents::each_stream(const Visit& visit) {
  for (NotedStream& noted : pending_.streams_) {
    if (noted.key.load(relaxed) == 0) continue;
    const Locked locked(pending_.lock_);
    if (!locked || !pending_.may_ask()) return;
    const std::uint64_t key = noted.key.load(relaxed);
    const ContextId context{noted.context.load(std::memory_order_acquire)};
    if (key != 0 && context.value != 0 && !visit(noted, key, context)) return;
  }
}

bool PendingFrees::AwaitedEvents::leaves_out(const NoneJoins& none_joins,
                                             CUstream stream) noexcept {
  const bool is_out = !none_joins.can_take_event(real_, stream);
  has_left_out_ = has_left_out_ || is_out;
  return is_out;
}

bool PendingFrees::AwaitedEvents::add_others() {
  if (!can_use_events_) return false;
  const driver::RelaxedCaptures harmless(real_);
  const NoneJoins none_joins(pending_.captures_, clock_);
  const std::size_t before = count_ + count_elsewhere_;
  each_stream([&](NotedStream& noted, std::uint64_t key, ContextId context) {
    return context == current_ || is_of_default(key) || contexts_.device_of(context) != device_ ||
           leaves_out(none_joins, reinterpret_cast<CUstream>(key)) ||
           put_elsewhere(noted, key, context);
  });
  return count_ + count_elsewhere_ != before;
}

CUevent PendingFrees::AwaitedEvents::event_in(CUstream stream, NotedStream* noted) {
  CUevent event = nullptr;
  if (real_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return nullptr;
  // Frees after the event are not covered by it, so they are noted again.
  if (noted != nullptr) {
    noted->again.store(false, relaxed);
    version_.fetch_add(1, relaxed);
  }
  if (real_.cuEventRecord(event, stream) == CUDA_SUCCESS) return event;
  real_.cuEventDestroy_v2(event);
  return nullptr;
}

bool PendingFrees::AwaitedEvents::put(CUstream stream, NotedStream* noted, std::uint64_t key) {
  if (count_ == limit) return false;
  if (const CUevent event = event_in(stream, noted); event != nullptr)
    events_[count_++] = {event, noted, key};
  return true;
}

bool PendingFrees::AwaitedEvents::put_elsewhere(NotedStream& noted, std::uint64_t key,
                                                ContextId context) {
  for (Elsewhere& vacant : pending_.elsewhere_) {
    if (vacant.owner != 0) continue;
    const driver::Inside inside(real_, context, current_);
    const CUevent event = inside ? event_in(reinterpret_cast<CUstream>(key), &noted) : nullptr;
    if (event == nullptr) return true;
    if (owner_ == 0) owner_ = ++pending_.last_owner_;
    vacant = {owner_, context, {event, &noted, key}};
    ++count_elsewhere_;
    return true;
  }
  return false;
}

PendingFrees::AwaitedEvents::~AwaitedEvents() {
  for (std::size_t i = 0; i < count_; ++i) real_.cuEventDestroy_v2(events_[i].event);
  each_elsewhere(
      [&](const AwaitedEvent& awaited) { return real_.cuEventDestroy_v2(awaited.event), true; });
}

// Calls visit(event) for each event in a stream of another context, with the lock held. An event
// for which it returns true is dropped.
template <class Visit>
void PendingFrees::AwaitedEvents::each_elsewhere(const Visit& visit) {
  if (count_elsewhere_ == 0) return;
  const Locked locked(pending_.lock_);
  // The events are kept: the destructor looks for them again.
  if (!locked) {
    is_over_ = true;
    return;
  }
  count_elsewhere_ = 0;
  if (pending_.left_.load()) return;
  for (Elsewhere& each : pending_.elsewhere_) {
    if (each.owner != owner_) continue;
    if (visit(each.event))
      each = {};
    else
      ++count_elsewhere_;
  }
}

bool PendingFrees::AwaitedEvents::synchronise_defaults() {
  if (real_.cuStreamSynchronize == nullptr) return false;
  const driver::GateClosed closed(patience_ns, clock_);
  if (!closed) return false;
  // The question if the context is idle would end a capture.
  if (pending_.captures_.any()) {
    has_left_out_ = true;
    has_defaults_ = false;
    return false;
  }
  const Locked locked(pending_.lock_);
  if (!locked || !pending_.may_ask()) return false;
  const auto each = [&](auto visit) {
    for (NotedStream& noted : pending_.streams_)
      if (const std::uint64_t key = noted.key.load(relaxed);
          is_of_default(key) && noted.context.load(relaxed) == current_.value)
        visit(noted, key);
  };
  // Frees from now on are not covered by the synchronisation, so they are noted again.
  each([](NotedStream& noted, std::uint64_t) { noted.again.store(false, relaxed); });
  version_.fetch_add(1, relaxed);
  if (!driver::is_idle(real_, current_) ||
      real_.cuStreamSynchronize(CU_STREAM_LEGACY) != CUDA_SUCCESS)
    return false;
  each([&](NotedStream& noted, std::uint64_t key) {
    if (!noted.again.load(relaxed)) pending_.remove(noted, key);
  });
  has_defaults_ = false;
  return true;
}

bool PendingFrees::AwaitedEvents::is_reached(const AwaitedEvent& awaited, bool& found) {
  const CUresult state = real_.cuEventQuery(awaited.event);
  if (state == CUDA_ERROR_NOT_READY) return false;
  if (state == CUDA_SUCCESS && real_.cuEventSynchronize(awaited.event) == CUDA_SUCCESS) {
    found = true;
    if (awaited.noted == nullptr)
      pending_.own_stream_is_reached(awaited.key);
    else if (!awaited.noted->again.load(relaxed))
      pending_.remove(*awaited.noted, awaited.key);
  }
  real_.cuEventDestroy_v2(awaited.event);
  return true;
}

void PendingFrees::own_stream_is_reached(std::uint64_t key) noexcept {
  if (own_stream.again) return;
  own_stream = {};
  for (NotedStream& noted : streams_)
    if (noted.key.load(relaxed) == key && noted.thread.load(relaxed) == this_thread())
      remove(noted, key);
}

bool PendingFrees::AwaitedEvents::synchronise_reached() {
  const driver::RelaxedCaptures harmless(real_);
  if (!harmless && pending_.captures_.any()) return false;
  bool found = false;
  {
    const Locked locked(pending_.lock_);
    is_over_ = is_over_ || !locked || !pending_.may_ask();
    for (std::size_t i = 0; !is_over_ && i < count_;) {
      if (is_reached(events_[i], found))
        events_[i] = events_[--count_];
      else
        ++i;
    }
  }
  if (is_over_) return false;
  each_elsewhere([&](const AwaitedEvent& awaited) {
    return pending_.may_ask() && is_reached(awaited, found);
  });
  if (has_defaults_ && synchronise_defaults()) found = true;
  return found;
}

}  // namespace cuwarden::rescue
