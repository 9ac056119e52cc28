// Streams in which memory was freed (cuMemFreeAsync) and that were not synchronised since, as far
// as the hooks saw. Their frees pend: the memory cannot serve other requests yet.
//
// Memory that is freed in stream order goes back to its memory pool at once. But it serves another
// request only after the stream was synchronised, or an event that was put into the stream after
// the free. It is not enough (measured) that time passes, that cuMemPoolTrimTo is called, that the
// device reached the free, that a query says so, or that another stream is synchronised.
// Synchronising an event that the device has reached takes no wait, whatever work follows it. So a
// request waits no longer than the device needs to reach the free.
//
// A thread's own default stream (CU_STREAM_PER_THREAD, or null in a _ptsz call) can be named by
// that thread alone. An event in the legacy default stream would be a barrier for all blocking
// streams, which may wait for each other. So neither kind gets an event for other threads' frees.
// Instead, while no thread submits work, the driver is asked if the context is idle. If it is,
// synchronising the legacy stream frees the memory of all default streams without a wait
// (measured).
//
// An event in a stream that is captured would become part of the graph. So while captures are in
// progress, the driver is asked for each stream if it is captured. The gate is closed during these
// questions, so that no stream joins a capture. Default streams are then left out: the question if
// a context is idle would end the capture (measured). Questions about events end none, because the
// thread's own capture mode is RELAXED during them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/tracking/captures.hpp"
#include "runtime_hooks/tracking/devices/live_contexts.hpp"

namespace cuwarden::rescue {

// Knows the streams with pending frees. Memory was freed in these streams (cuMemFreeAsync), but
// they were not synchronised since, so the memory cannot serve other requests yet. All threads may
// call the functions at any time.
class PendingFrees {
  // A stream with pending frees: memory was freed in it (cuMemFreeAsync), and it was not
  // synchronised since. The threads' own default streams (CU_STREAM_PER_THREAD) of one context
  // share one row.
  struct NotedStream {
    // The stream's handle. For a context's legacy default stream, the context's handle with bit 0
    // set. For the threads' own default streams of a context, the context's handle with bit 1 set.
    // 0: the row is vacant.
    std::atomic<std::uint64_t> key{0};
    // Handle of the stream's context (CUcontext). A vacant row keeps that of its last stream; 0:
    // none was stored yet.
    std::atomic<std::uint64_t> context{0};
    // Only used in the row of the threads' own default streams; otherwise 0. If one thread freed
    // memory in its stream, an address in that thread's thread-local memory. If several threads
    // did, 1.
    std::atomic<std::uint64_t> thread{0};
    // True if memory was freed in the stream after the last event was put into it for a rescue.
    std::atomic<bool> again{false};
  };
  // An event that was put into a stream after the stream's pending frees. Once the device has
  // reached the event, it has reached these frees.
  struct AwaitedEvent {
    CUevent event = nullptr;  // the event; null only in an unused entry
    // The row of the event's stream; null: the calling thread's own default stream.
    NotedStream* noted = nullptr;
    // Key of the event's stream, as in NotedStream: the stream's handle; for a thread's own default
    // stream, the context's handle with bit 1 set.
    std::uint64_t key = 0;
  };

 public:
  // Makes an object without streams. `captures`: the process's stream captures in progress;
  // outlives the object. Raises version_, and keeps the new value as first_version_. By these
  // numbers, a thread of a forked child tells that its thread-local records of streams are about
  // its parent's object.
  explicit PendingFrees(const tracking::Captures& captures) noexcept
      : captures_(captures), first_version_(version_.fetch_add(1, std::memory_order_relaxed) + 1) {}

  // Returns true if freed_in() need not be called for a free in this stream. That is so if the
  // calling thread's last free was in this stream, and the stream still counts as one with pending
  // frees (cuMemFreeAsync, not synchronised since). Always false for default streams, because the
  // handle does not tell their context.
  bool was_noted_last(CUstream) const noexcept;
  // Adds the stream to those with pending frees (cuMemFreeAsync, not synchronised since).
  // `ContextId`: the stream's context. Must be called before the driver's cuMemFreeAsync. If 512
  // streams are known already, the stream is left out.
  void freed_in(CUstream, ContextId) noexcept;
  // Removes a stream from those with pending frees (cuMemFreeAsync, not synchronised since). Must
  // be called before the driver destroys the stream, since its handle must not be used afterwards.
  void stream_ends(CUstream) noexcept;
  // Removes all streams of a context from those with pending frees (cuMemFreeAsync, not
  // synchronised since). Must be called before the driver ends the context. 0: the context is
  // unknown, so the streams of all contexts are removed.
  void context_ends(ContextId) noexcept;
  // Waits until no other thread is putting an event into a stream, since the event might become
  // part of the capture. Must be called after Captures::begins() has counted a capture and before
  // the driver begins the capture.
  void capture_begins() noexcept;

  // The events by which one refused request waits for pending frees (memory freed in streams that
  // were not synchronised since). Used by one thread. The constructor puts events into streams of
  // the current context; add_others() into those of other contexts.
  class AwaitedEvents {
   public:
    // Puts an event into each stream of the current context that has pending frees (cuMemFreeAsync,
    // not synchronised since), into 64 streams at most. Of the default streams, only the calling
    // thread's own one gets an event. `current`: the current context. `device`: device of the
    // request, for add_others(). `clock`: measures waits for the gate. All references outlive the
    // object.
    AwaitedEvents(PendingFrees&, const driver::RealDriver&, const tracking::LiveContexts&,
                  ContextId current, DeviceOrdinal device, Clock& clock);
    // Destroys the events that were not reached. Events in other contexts may stay until their
    // contexts end: if another thread keeps the lock of PendingFrees for too long again, or has
    // ended a stream or context without the lock.
    ~AwaitedEvents();
    AwaitedEvents(const AwaitedEvents&) = delete;
    AwaitedEvents& operator=(const AwaitedEvents&) = delete;
    // Puts events into streams with pending frees (cuMemFreeAsync, not synchronised since) in the
    // device's live contexts other than the current one, except default streams. Returns true if it
    // put in any.
    bool add_others();
    // Returns true while the object knows pending frees (cuMemFreeAsync) that were not synchronised
    // yet. Frees in streams that got no event because of captures do not count (has_left_out()).
    // False once another thread was found to keep the lock of PendingFrees for too long.
    bool any() const noexcept {
      return !is_over_ && (has_defaults_ || count_ + count_elsewhere_ != 0);
    }
    // Synchronises the events that the device has reached, so that the memory freed before them can
    // serve other requests. If the current context is idle, also synchronises its default streams.
    // Returns true if there was anything to synchronise: the caller then asks the driver again.
    bool synchronise_reached();
    // Returns true if streams with pending frees (cuMemFreeAsync, not synchronised since) were left
    // out because of stream captures. Such streams are captured themselves, or the driver could not
    // be asked if they are. Default streams are left out while any capture is in progress.
    bool has_left_out() const noexcept { return has_left_out_; }

   private:
    // Keeps streams from joining stream captures in progress, for the length of a scope.
    class NoneJoins;
    // Most events that one refused request has in streams of the current context.
    static constexpr std::size_t limit = 64;
    // Calls visit(row, key, context) for each stream with pending frees, with PendingFrees::lock_
    // held. `row`, `key`: the stream's NotedStream, and its key. `context`: the stream's context.
    // Stops once `visit` returns false or PendingFrees::may_ask() is false.
    template <class Visit>
    void each_stream(const Visit&);
    // Calls visit(event) for each of this object's events in streams of other contexts than the
    // current one, with PendingFrees::lock_ held. Drops the events for which `visit` returns true.
    template <class Visit>
    void each_elsewhere(const Visit&);
    // Puts an event into a stream of the current context. `NotedStream`: the stream's row; null for
    // the thread's own default stream. `key`: NotedStream::key of the stream. The caller holds
    // PendingFrees::lock_. Returns false if there is no room for more events; true also if the
    // driver refuses the event.
    bool put(CUstream, NotedStream*, std::uint64_t key);
    // Puts an event into a stream of the context `ContextId`, which is not the current one.
    // `NotedStream`: the stream's row. `key`: the stream's handle. The caller holds
    // PendingFrees::lock_. Returns false if there is no room for more events; true also if the
    // driver refuses the event.
    bool put_elsewhere(NotedStream&, std::uint64_t key, ContextId);
    // Returns true if the stream must get no event because of captures; has_left_out() is then true
    // from now on. The caller holds PendingFrees::lock_.
    bool leaves_out(const NoneJoins&, CUstream) noexcept;
    // Makes an event and puts it into the stream. Returns null if the driver refuses.
    // `NotedStream`: the stream's row; null for the thread's own default stream.
    CUevent event_in(CUstream, NotedStream*);
    // If the device has reached the event, synchronises it and sets `found` to true. Returns true,
    // and destroys the event, if it was reached or the driver does not know it because its context
    // is gone. Otherwise returns false.
    bool is_reached(const AwaitedEvent&, bool& found);
    // If the current context is idle, synchronises the frees in its default streams, including
    // those of other threads. Returns true if it did. Does nothing but make has_left_out() true
    // while a capture is in progress.
    bool synchronise_defaults();

    // The streams with pending frees, which all threads share.
    PendingFrees& pending_;
    // The driver's own functions.
    const driver::RealDriver& real_;
    // Tells the device of each of the process's contexts.
    const tracking::LiveContexts& contexts_;
    const ContextId current_;     // the requesting thread's current context
    const DeviceOrdinal device_;  // device of the refused request
    Clock& clock_;                // measures waits for the gate
    // True if the driver has the functions for events; otherwise no stream gets an event.
    bool can_use_events_ = false;
    // Events in streams of the current context, each put there after the stream's pending frees.
    // Entries from `count_` on are not in use.
    AwaitedEvent events_[limit];
    // Number of this object's events in streams of the current context (`count_`), and in streams
    // of other contexts (`count_elsewhere_`).
    std::size_t count_ = 0, count_elsewhere_ = 0;
    // Number that marks this object's entries of PendingFrees::elsewhere_; 0: it has none.
    std::uint32_t owner_ = 0;
    // True if default streams of the current context have pending frees after which this object has
    // put no event.
    bool has_defaults_ = false;
    // True once streams with pending frees were left out because of captures (has_left_out()).
    bool has_left_out_ = false;
    // True once this object must touch no stream any more. Another thread has kept
    // PendingFrees::lock_ for too long, or has ended a stream or context without it.
    bool is_over_ = false;
  };

  // Returns a number that changes when memory is freed (cuMemFreeAsync) in a stream whose earlier
  // frees were all synchronised. A caller whose request failed compares it with an earlier value to
  // find out if more memory may be had.
  std::uint32_t noted() const noexcept { return noted_.load(std::memory_order_relaxed); }

 private:
  // Most streams with pending frees (cuMemFreeAsync, not synchronised since) that are known at a
  // time. Frees in further streams pend until the program itself synchronises them.
  static constexpr std::size_t most_streams = 512;
  // Makes the stream's row vacant if it still has the key `key`; otherwise does nothing.
  void remove(NotedStream&, std::uint64_t key) noexcept;
  // Returns true if the calling thread has freed memory in its own default stream of this context,
  // and the stream was not synchronised since.
  bool frees_in_own_stream(ContextId) const noexcept;
  // Forgets the calling thread's pending frees in its own default stream, because an event in the
  // stream was synchronised. Keeps them if the thread has freed memory there after that event.
  // `key`: NotedStream::key of the stream: the context's handle with bit 1 set.
  void own_stream_is_reached(std::uint64_t key) noexcept;
  // Returns true if the driver may be asked to put events into streams and to query events. False
  // once another thread has ended a stream or context, or begun a capture, without lock_. The
  // caller holds lock_.
  bool may_ask() const noexcept { return !left_.load(); }

  const tracking::Captures& captures_;  // the stream captures in progress
  // Number that no other PendingFrees object of this process or of its parent has. A thread keeps
  // it with its thread-local record of pending frees in its own default stream. So the thread knows
  // to which object the record belongs.
  const std::uint32_t first_version_;
  // The streams with pending frees, in no order, between vacant rows.
  NotedStream streams_[most_streams];
  // An event that a refused request awaits, in a stream of a context that is not current in the
  // requesting thread. Guarded by lock_, because another thread may end that context at any time.
  struct Elsewhere {
    // Number of the AwaitedEvents object that has the event (AwaitedEvents::owner_); 0: the row is
    // vacant.
    std::uint32_t owner = 0;
    ContextId context;     // context of the event's stream
    AwaitedEvent event{};  // the event, its stream's row in `streams_`, and its stream's key
  };
  // Most events in streams of contexts that are not current, for the refused requests of all
  // threads together.
  static constexpr std::size_t most_elsewhere = 64;
  // Events in streams of contexts that are not current, between vacant rows. Guarded by lock_.
  Elsewhere elsewhere_[most_elsewhere];
  // Highest value of AwaitedEvents::owner_ so far; 0: no object has got one. Guarded by lock_.
  std::uint32_t last_owner_ = 0;
  // Result of noted(): rises when memory is freed (cuMemFreeAsync) in a stream whose earlier frees
  // were all synchronised.
  std::atomic<std::uint32_t> noted_{0};
  // Number that rises when a stream is removed from `streams_`, and when a stream gets an event for
  // a rescue. A thread that frees memory looks for the stream in `streams_` only if its last free
  // was in another stream, or if the number has changed since.
  static inline constinit std::atomic<std::uint32_t> version_{1};
  // Held while an event is put into a stream or queried. So no other thread destroys the stream or
  // its context during the call. The driver does not reliably refuse the handle of a destroyed
  // stream. The driver's functions that are called under the lock neither wait nor call anything of
  // the program's.
  FutexLock lock_;
  // True once a stream or context was ended, or a stream capture begun, without `lock_`. That
  // happens if another thread has kept the lock for more than ten seconds. From then on, no event
  // is put into a stream or queried.
  std::atomic<bool> left_{false};
};

}  // namespace cuwarden::rescue
