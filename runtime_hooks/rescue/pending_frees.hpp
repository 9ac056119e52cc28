// Streams in which memory was freed (cuMemFreeAsync) and that were not synchronised since, as far
// as the hooks saw. Their frees pend: the memory cannot serve other requests yet.
//
// Memory that is freed in stream order goes back to its memory pool at once. No other request gets
// it before the stream is synchronised, or an event in the stream that comes after the free. None
// of these helps (measured): time, cuMemPoolTrimTo, that the device reached the free, a query that
// says so, the synchronisation of another stream. An event that the device has reached is
// synchronised without a wait, whatever work follows it. So a request waits no longer than the
// device needs to reach the free.
//
// A thread's own default stream (CU_STREAM_PER_THREAD, or null in a _ptsz call) can be named by
// that thread alone. An event in the legacy default stream would be a barrier for all blocking
// streams, which may wait for each other. So for both kinds the driver is only asked if the context
// is idle, at a moment when no thread submits work. Synchronising the legacy stream then frees the
// memory of all default streams without a wait (measured).
//
// An event in a stream that is captured would become part of the graph. While captures are in
// progress, the driver is therefore asked for each stream if it is captured. Meanwhile the gate is
// closed, so that no stream joins a capture. Default streams are left out then: the question if a
// context is idle would end the capture (measured). Asking about events ends none, because the
// thread's own capture mode is RELAXED meanwhile.
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

// Knows the streams with pending frees: memory was freed in them (cuMemFreeAsync), and they were
// not synchronised since, so that the memory cannot serve other requests yet. All threads may call
// the functions at any time.
class PendingFrees {
  // A stream with pending frees: memory was freed in it (cuMemFreeAsync), and it was not
  // synchronised since.
  struct NotedStream {
    // The stream's handle. For a context's legacy default stream, the context's handle with bit 0
    // set; for its threads' own default streams, with bit 1 set. 0: the row is vacant.
    std::atomic<std::uint64_t> key{0};
    std::atomic<std::uint64_t> context{0};  // handle of the stream's context (CUcontext)
    // Only for a row of the threads' own default streams, which a context's threads share: an
    // address in the thread-local memory of the thread that freed memory there; 1 if several
    // threads did. 0 in other rows.
    std::atomic<std::uint64_t> thread{0};
    // True if memory was freed in the stream after an event was last put into it.
    std::atomic<bool> again{false};
  };
  // An event that was put into a stream after the stream's pending frees. The device has reached
  // these frees once it has reached the event.
  struct AwaitedEvent {
    CUevent event = nullptr;       // the event; null only in an unused entry
    NotedStream* noted = nullptr;  // the stream's row; null: the thread's own default stream
    // The stream's handle, or for a thread's own default stream the context's handle with bit 1 set
    // (NotedStream::key).
    std::uint64_t key = 0;
  };

 public:
  // Makes an object without streams. Its version number tells it from an earlier object: a forked
  // child's thread inherits what its parent's thread remembers about an object.
  // `captures`: the process's captures in progress; outlives the object.
  explicit PendingFrees(const tracking::Captures& captures) noexcept
      : captures_(captures), first_version_(version_.fetch_add(1, std::memory_order_relaxed) + 1) {}

  // Returns true if freed_in() need not be called for a free in this stream. That is so if the
  // calling thread's last free was in the same stream, and the stream still counts as one with
  // pending frees (memory freed that was not synchronised since). Always false for default streams,
  // because the handle does not tell their context.
  bool was_noted_last(CUstream) const noexcept;
  // Adds the stream to those with pending frees (memory freed in a stream that was not synchronised
  // since). Must be called before the driver's cuMemFreeAsync, with the stream's context. If 512
  // streams are known already, the stream is left out.
  void freed_in(CUstream, ContextId) noexcept;
  // Removes a stream from those with pending frees (memory freed that was not synchronised since).
  // Must be called before the driver destroys the stream, since its handle must not be used
  // afterwards.
  void stream_ends(CUstream) noexcept;
  // Removes all streams of a context from those with pending frees (memory freed that was not
  // synchronised since). Must be called before the driver ends the context. 0: the context is
  // unknown, so the streams of all contexts are removed.
  void context_ends(ContextId) noexcept;
  // Waits until no event is being put into a stream. Must be called after Captures::begins() has
  // counted a capture and before the driver begins it.
  void capture_begins() noexcept;

  // The events by which one refused request waits for pending frees (memory freed in streams that
  // were not synchronised since). At first they are in streams of the current context: the calling
  // thread's own default stream, and those that are no default streams. Used by one thread.
  class AwaitedEvents {
   public:
    // Puts events into the streams of the current context in which memory was freed and that were
    // not synchronised since. Of the default streams, only the calling thread's own one gets an
    // event. At most 64 streams get one. `current`: the current context. `device`: device of the
    // request; add_others() puts events into streams of its other contexts. All references outlive
    // the object.
    AwaitedEvents(PendingFrees&, const driver::RealDriver&, const tracking::LiveContexts&,
                  ContextId current, DeviceOrdinal device);
    // Destroys the events that are left.
    ~AwaitedEvents();
    AwaitedEvents(const AwaitedEvents&) = delete;
    AwaitedEvents& operator=(const AwaitedEvents&) = delete;
    // Puts events into streams of the device's live contexts other than the current one: into those
    // in which memory was freed and that were not synchronised since, except default streams.
    // Returns true if it put in any.
    bool add_others();
    // Returns true while the object knows pending frees that were not synchronised yet, apart from
    // those for which has_left_out() is true. Always false once a thread was seen to have left the
    // lock of PendingFrees locked.
    bool any() const noexcept {
      return !is_over_ && (has_defaults_ || count_ + count_elsewhere_ != 0);
    }
    // Synchronises the events that the device has reached, so that the memory freed before them can
    // serve other requests. If the current context is idle, also synchronises its default streams.
    // Returns true if there was anything to synchronise: the caller then asks the driver again.
    bool synchronise_reached();
    // Returns true if streams with pending frees were left out, because they are captured, or
    // because other streams are and the driver cannot be asked about these.
    bool has_left_out() const noexcept { return has_left_out_; }

   private:
    // Keeps streams from joining captures in progress, for the length of a scope.
    class NoneJoins;
    // Most events in streams of the current context that one refused request waits for.
    static constexpr std::size_t limit = 64;
    // Calls visit(row, key, context) for each stream with pending frees: with its NotedStream, its
    // NotedStream::key and its context. PendingFrees::lock_ is held during each call. Stops once
    // `visit` returns false or PendingFrees::may_ask() is false.
    template <class Visit>
    void each_stream(const Visit&);
    // Calls visit(event) for each of this object's events in streams of other contexts, with
    // PendingFrees::lock_ held. Drops the events for which `visit` returns true.
    template <class Visit>
    void each_elsewhere(const Visit&);
    // Puts an event into a stream of the current context. `NotedStream`: the stream's row; null for
    // the thread's own default stream. `key`: the stream's NotedStream::key. The caller holds
    // PendingFrees::lock_. Returns false if there is no room for more events; true also if the
    // driver refuses the event.
    bool put(CUstream, NotedStream*, std::uint64_t key);
    // Puts an event into a stream of another context, `ContextId`. `NotedStream`: the stream's row.
    // `key`: its NotedStream::key, which is the stream's handle. The caller holds
    // PendingFrees::lock_. Returns false if there is no room for more events; true also if the
    // driver refuses the event.
    bool put_elsewhere(NotedStream&, std::uint64_t key, ContextId);
    // Returns true if the stream must get no event because of captures. Then has_left_out() is true
    // from now on. The caller holds PendingFrees::lock_.
    bool leaves_out(const NoneJoins&, CUstream) noexcept;
    // Makes an event in the stream; null if the driver refuses. `NotedStream` is the stream's row;
    // null for the thread's own default stream.
    CUevent event_in(CUstream, NotedStream*);
    // If the device has reached the event, synchronises it and sets `found` to true. Returns true
    // if the event was reached, or if the driver does not know it because its context is gone. In
    // both cases destroys the event.
    bool is_reached(const AwaitedEvent&, bool& found);
    // If the current context is idle, synchronises the frees in its default streams, including
    // those of other threads. Returns true if it did. While a capture is in progress, does nothing
    // but make has_left_out() true.
    bool synchronise_defaults();

    // The streams with pending frees, which all threads share.
    PendingFrees& pending_;
    // The driver's own functions.
    const driver::RealDriver& real_;
    // Tells the device of each of the process's contexts.
    const tracking::LiveContexts& contexts_;
    const ContextId current_;     // the requesting thread's current context
    const DeviceOrdinal device_;  // device of the refused request
    // True if the driver has the functions for events; otherwise no stream gets an event.
    bool can_use_events_ = false;
    // Events that were put after pending frees in streams of the current context: the first
    // `count_` entries. Others are unused.
    AwaitedEvent events_[limit];
    // Number of this object's events in streams of the current context, and in those of other
    // contexts.
    std::size_t count_ = 0, count_elsewhere_ = 0;
    // Number that tells this object's entries of `elsewhere_` from those of other objects; 0: it
    // has none.
    std::uint32_t owner_ = 0;
    // True if frees pend in default streams of the current context that no event of this object
    // covers.
    bool has_defaults_ = false;
    // True once a stream with pending frees got no event, because of captures in progress.
    bool has_left_out_ = false;
    // True once this object must touch no stream any more: a thread has kept PendingFrees::lock_
    // for too long, or a stream or context has ended without that lock.
    bool is_over_ = false;
  };

  // Returns a number that changes when a stream without pending frees gets one (memory freed in the
  // stream). A caller whose request failed compares it with an earlier value to find out if more
  // memory may be had now.
  std::uint32_t noted() const noexcept { return noted_.load(std::memory_order_relaxed); }

 private:
  // Most streams with pending frees (memory freed in them that was not synchronised since) that are
  // known at a time. Frees in further streams pend until the program itself synchronises them.
  static constexpr std::size_t most_streams = 512;
  // Makes the row vacant if its stream still has the key `key`; otherwise does nothing.
  void remove(NotedStream&, std::uint64_t key) noexcept;
  // Returns true if the calling thread has freed memory in its own default stream of this context,
  // and the stream was not synchronised since.
  bool frees_in_own_stream(ContextId) const noexcept;
  // Forgets the calling thread's pending frees (cuMemFreeAsync) in its own default stream. To be
  // called after an event in the stream was synchronised. Keeps them if the thread has noted a free
  // after that event. `key`: NotedStream::key of the stream, the context's handle with bit 1 set.
  void own_stream_is_reached(std::uint64_t key) noexcept;
  // Returns true if events may be put into streams and asked for: no stream or context was ended,
  // and no capture begun, without lock_. The caller holds lock_.
  bool may_ask() const noexcept { return !left_.load(); }

  const tracking::Captures& captures_;  // the stream captures in progress
  // Number by which a thread knows the object that has noted its frees. An earlier object of the
  // process, or of its parent, has another one.
  const std::uint32_t first_version_;
  // The streams with pending frees, in no order, between vacant rows.
  NotedStream streams_[most_streams];
  // An event in a stream of a context that is not the current one of its thread. Another thread may
  // end that context at any time. Guarded by lock_.
  struct Elsewhere {
    std::uint32_t owner = 0;  // AwaitedEvents::owner_ of the event's object; 0: the row is vacant
    ContextId context;        // context of the event's stream
    AwaitedEvent event{};     // the event, and the row and key of its stream
  };
  // Most events in streams of contexts that are not current, for the refused requests of all
  // threads together.
  static constexpr std::size_t most_elsewhere = 64;
  // Events in streams of contexts that are not current, between vacant rows. Guarded by lock_.
  Elsewhere elsewhere_[most_elsewhere];
  // The number that an AwaitedEvents object has got last as its AwaitedEvents::owner_; 0: none has
  // got one. Guarded by lock_.
  std::uint32_t last_owner_ = 0;
  // Result of noted(): a number that changes when memory is freed in a stream whose earlier frees
  // were all synchronised.
  std::atomic<std::uint32_t> noted_{0};
  // Threads note the stream of a free only if it differs from that of their last free. This number
  // rises when a noted stream is forgotten, because it was synchronised, or because an event was
  // recorded in it for a rescue. Each thread then notes its next free, whatever the stream.
  static inline constinit std::atomic<std::uint32_t> version_{1};
  // Held while an event is put into a stream or asked for, so that no other thread destroys the
  // stream or its context meanwhile. The driver does not reliably refuse the handle of a destroyed
  // one. The driver's functions that are called under the lock neither wait nor call anything of
  // the program's.
  FutexLock lock_;
  // True once a stream or context was ended, or a stream capture begun, without `lock_`: another
  // thread had kept the lock for more than ten seconds. No event is put into a stream or asked for
  // from then on.
  std::atomic<bool> left_{false};
};

}  // namespace cuwarden::rescue
