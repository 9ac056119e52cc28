// Streams in which memory was freed and that nobody has synchronised since, as far as it was seen.
//
// Memory that is freed in stream order goes back to its pool at once, but nobody else gets it
// before the stream is synchronised, or an event in it that comes after the free. Measured: neither
// time nor cuMemPoolTrimTo helps, nor that the free was reached, nor a query that says so, nor the
// synchronisation of another stream. An event that has come is synchronised at once, whatever work
// follows it: so nobody waits for longer than it takes the device to come that far.
//
// A thread's own default stream (CU_STREAM_PER_THREAD, or null in a _ptsz call) can be named by
// that thread alone, and an event in the legacy default stream would be a barrier for all blocking
// streams, which may wait for each other. So of both nothing is asked but whether the whole context
// is idle, at a moment when nobody submits; then the legacy stream, synchronised, has all their
// frees noticed (measured), and nobody waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::rescue {

class PendingFrees {
  struct Place {
    std::atomic<std::uint64_t> key{0};  // 0: free
    std::atomic<std::uint64_t> context{0};
    // Of own default streams: the one thread that freed there, or that there are several.
    std::atomic<std::uint64_t> thread{0};
    std::atomic<bool> again{false};  // noted again since it was marked
  };
  struct Mark {
    CUevent event = nullptr;
    Place* place = nullptr;  // none: of the thread's own stream
    std::uint64_t key = 0;
  };

 public:
  // What threads noted with an earlier one, as that of a fork's parent, is not this one's.
  PendingFrees() noexcept : first_version_(version_.fetch_add(1, std::memory_order_relaxed) + 1) {}

  // Whether the thread's last one was in the same stream, and is still noted: then nothing is new.
  // False of default streams, which each context has.
  bool was_noted_last(CUstream) const noexcept;
  // Before the driver's free; with the stream's context.
  void freed_in(CUstream, ContextId) noexcept;
  // Before the driver ends it: nobody asks about it any more.
  void stream_ends(CUstream) noexcept;
  // The same of a context's streams; 0: of all.
  void context_ends(ContextId) noexcept;
  // Before a stream capture begins. From then on no stream is touched: an event in one that is
  // captured, or that joins a capture, would be the capture's.
  void capture_begins() noexcept;

  // Events in streams, after the frees that were noted: at first in those of the current context
  // that the thread can name.
  class Marks {
   public:
    // `may_enter`: whether a context that is not current is alive, and frees in it are of interest.
    // It must call nothing of the program's.
    Marks(PendingFrees&, const driver::RealDriver&, ContextId current,
          FunctionRef<bool(ContextId)> may_enter);
    ~Marks();
    Marks(const Marks&) = delete;
    Marks& operator=(const Marks&) = delete;
    // And behind frees in the streams of other contexts, but for their default ones. True: there
    // were some.
    bool add_others();
    // Whether there are any that the device has not come to.
    bool any() const noexcept {
      return !is_over_ && (has_defaults_ || count_ + count_elsewhere_ != 0);
    }
    // Synchronises those that it has come to. True: there were some.
    bool synchronise_reached();

   private:
    static constexpr std::size_t limit = 64;
    template <class Visit>
    void each_place(const Visit&);
    template <class Visit>
    void each_elsewhere(const Visit&);
    // With the lock held: puts one into this stream, behind the frees that are noted at this place;
    // none: in the thread's own. False: there is no room for more.
    bool put(CUstream, Place*, std::uint64_t key);
    bool put_elsewhere(Place&, std::uint64_t key, ContextId);
    CUevent event_in(CUstream, Place*);
    // Also of one that the driver does not know: it is gone. `found`: it was synchronised.
    bool is_reached(const Mark&, bool& found);
    // Frees in default streams of the current context, other threads' own ones included.
    bool synchronise_defaults();

    PendingFrees& pending_;
    const driver::RealDriver& real_;
    const ContextId current_;
    const FunctionRef<bool(ContextId)> may_enter_;
    bool can_mark_ = false;
    Mark marks_[limit];
    std::size_t count_ = 0, count_elsewhere_ = 0;
    std::uint32_t owner_ = 0;
    bool has_defaults_ = false;
    bool is_over_ = false;  // a capture was begun: nothing is touched any more
  };

  // Another number where memory was freed in a stream that was not noted.
  std::uint32_t noted() const noexcept { return noted_.load(std::memory_order_relaxed); }

 private:
  // More streams at once wait for the program's own synchronisation.
  static constexpr std::size_t places = 512;
  void remove(Place&, std::uint64_t key) noexcept;
  // The calling thread freed something in its own default stream of this context.
  bool frees_in_own_stream(ContextId) const noexcept;
  void own_stream_is_reached(std::uint64_t key) noexcept;
  // With the lock held.
  bool may_ask() const noexcept { return !captures_ && !left_.load(); }

  const std::uint32_t first_version_;
  Place places_[places];
  // Another thread may end their contexts at any time: with the lock held.
  struct Elsewhere {
    std::uint32_t owner = 0;  // Marks::owner_; 0: none
    ContextId context;
    Mark mark{};
  };
  static constexpr std::size_t most_elsewhere = 64;
  Elsewhere elsewhere_[most_elsewhere];
  std::uint32_t last_owner_ = 0;
  std::atomic<std::uint32_t> noted_{0};
  // Of what threads know to be noted; changes where something is not any more.
  static inline constinit std::atomic<std::uint32_t> version_{1};
  // Held while an event is put into a stream, or asked for where its context is not current: the
  // driver does not check a handle well, and one that is destroyed meanwhile must not be used. That
  // neither waits nor calls anything of the program's.
  FutexLock lock_;
  bool captures_ = false;
  // The lock was given up, and a stream destroyed without it: nobody asks any more.
  std::atomic<bool> left_{false};
};

}  // namespace cuwarden::rescue
