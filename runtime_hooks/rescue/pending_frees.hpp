// Streams in which memory was freed and that were not synchronised since, as far as the hooks saw.
//
// Memory that is freed in stream order goes back to its memory pool at once. No other request gets
// it before the stream is synchronised, or an event in the stream that comes after the free.
// Measured: none of these helps: time, cuMemPoolTrimTo, that the device reached the free, a query
// that says so, the synchronisation of another stream. An event that was reached is synchronised at
// once, whatever work follows it. So a request waits no longer than the device needs to reach the
// free.
//
// A thread's own default stream (CU_STREAM_PER_THREAD, or null in a _ptsz call) can be named by
// that thread alone, and an event in the legacy default stream would be a barrier for all blocking
// streams, which may wait for each other. For both kinds the context is only asked if it is idle,
// at a moment when no thread submits work. Synchronising the legacy stream then frees all their
// memory (measured) without a wait.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/tracking/live_contexts.hpp"

namespace cuwarden::rescue {

class PendingFrees {
  // A stream with frees that were not synchronised.
  struct NotedStream {
    std::atomic<std::uint64_t> key{0};  // 0: the row is vacant
    std::atomic<std::uint64_t> context{0};
    // For the threads' own default streams: the thread that freed memory there, or several_threads.
    std::atomic<std::uint64_t> thread{0};
    std::atomic<bool> again{
        false};  // true if memory was freed since an event was put into the stream
  };
  // An event in a stream, behind the frees that were noted there.
  struct Mark {
    CUevent event = nullptr;
    NotedStream* noted = nullptr;  // null: the thread's own default stream
    std::uint64_t key = 0;         // of the stream
  };

 public:
  // Threads remember what they noted. The version tells this object's notes from those of an
  // earlier one, such as a fork's parent had.
  PendingFrees() noexcept : first_version_(version_.fetch_add(1, std::memory_order_relaxed) + 1) {}

  // Returns true if the thread's last free was in this stream and the stream is still noted: then
  // freed_in() would change nothing. Always false for default streams, which each context has.
  bool was_noted_last(CUstream) const noexcept;
  // To be called before the driver's free, with the stream's context.
  void freed_in(CUstream, ContextId) noexcept;
  // To be called before the driver ends the stream, which is not asked about afterwards.
  void stream_ends(CUstream) noexcept;
  // To be called before the driver ends a context, for all of its streams; 0: whichever context.
  void context_ends(ContextId) noexcept;
  // To be called before a stream capture begins. From then on no stream is touched: an event in a
  // stream that is captured, or that joins a capture, would become part of the capture.
  void capture_begins() noexcept;

  // Events that lie behind the noted frees: at first in the streams of the current context that the
  // thread can name.
  class Marks {
   public:
    // Frees on `device` may help. All references outlive the object.
    Marks(PendingFrees&, const driver::RealDriver&, const tracking::LiveContexts&,
          ContextId current, DeviceOrdinal device);
    ~Marks();
    Marks(const Marks&) = delete;
    Marks& operator=(const Marks&) = delete;
    // Adds events in streams of the device's other live contexts, except their default streams.
    // Returns true if there were any.
    bool add_others();
    // Returns true while there are frees that the device has not reached.
    bool any() const noexcept {
      return !is_over_ && (has_defaults_ || count_ + count_elsewhere_ != 0);
    }
    // Synchronises the events that the device has reached. Returns true if there were any.
    bool synchronise_reached();

   private:
    static constexpr std::size_t limit = 64;
    template <class Visit>
    void each_stream(const Visit&);
    template <class Visit>
    void each_elsewhere(const Visit&);
    // Puts an event into this stream, with the lock held. Null: the thread's own default stream.
    // Returns false where there is no room for more.
    bool put(CUstream, NotedStream*, std::uint64_t key);
    bool put_elsewhere(NotedStream&, std::uint64_t key, ContextId);
    CUevent event_in(CUstream, NotedStream*);
    // Returns true for an event that the device has reached, or that the driver does not know
    // because the context is gone. Sets `found` where it synchronised the event.
    bool is_reached(const Mark&, bool& found);
    // Synchronises frees in default streams of the current context, also in other threads' own
    // ones, if the context is idle. Returns true if it did.
    bool synchronise_defaults();

    PendingFrees& pending_;
    const driver::RealDriver& real_;
    const tracking::LiveContexts& contexts_;
    const ContextId current_;
    const DeviceOrdinal device_;
    bool can_mark_ = false;
    Mark marks_[limit];
    std::size_t count_ = 0, count_elsewhere_ = 0;
    std::uint32_t owner_ = 0;
    bool has_defaults_ = false;
    bool is_over_ = false;  // true once a capture was begun: no stream is touched any more
  };

  // A number that changes when memory is freed in a stream that was not noted.
  std::uint32_t noted() const noexcept { return noted_.load(std::memory_order_relaxed); }

 private:
  // Frees in more streams than this wait for the program's own synchronisation.
  static constexpr std::size_t most_streams = 512;
  void remove(NotedStream&, std::uint64_t key) noexcept;
  // Returns true if the calling thread freed memory in its own default stream of this context.
  bool frees_in_own_stream(ContextId) const noexcept;
  void own_stream_is_reached(std::uint64_t key) noexcept;
  // Returns true while streams may be touched. The lock must be held.
  bool may_ask() const noexcept { return !captures_ && !left_.load(); }

  const std::uint32_t first_version_;
  NotedStream streams_[most_streams];
  // Marks in streams of contexts that another thread may end at any time. Guarded by lock_.
  struct Elsewhere {
    std::uint32_t owner = 0;  // Marks::owner_; 0: the row is vacant
    ContextId context;
    Mark mark{};
  };
  static constexpr std::size_t most_elsewhere = 64;
  Elsewhere elsewhere_[most_elsewhere];
  std::uint32_t last_owner_ = 0;
  std::atomic<std::uint32_t> noted_{0};
  // Changes when a stream is no longer noted, so that threads forget what they know to be noted.
  static inline constinit std::atomic<std::uint32_t> version_{1};
  // Held while an event is put into a stream, or asked for where its context is not current. The
  // driver does not check handles well, and a handle that is destroyed meanwhile must not be used.
  // The calls below the lock neither wait nor call anything of the program's.
  FutexLock lock_;
  bool captures_ = false;
  // True once the lock was given up and a stream destroyed without it: no stream is asked any more.
  std::atomic<bool> left_{false};
};

}  // namespace cuwarden::rescue
