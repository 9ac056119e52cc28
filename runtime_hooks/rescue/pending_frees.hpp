// Streams in which memory was freed and that nobody has synchronised since, as far as it was seen.
//
// Memory that is freed in stream order goes back to its pool at once, but nobody else gets it
// before the stream is synchronised, or an event in it that comes after the free. Measured: neither
// time nor cuMemPoolTrimTo helps, nor that the free was reached, nor a query that says so, nor the
// synchronisation of another stream. An event that has come is synchronised at once, whatever work
// follows it: so nobody waits for longer than it takes the device to come that far.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::rescue {

class PendingFrees {
 public:
  // What threads noted with an earlier one, as that of a fork's parent, is not this one's.
  PendingFrees() noexcept : first_version_(version_.fetch_add(1, std::memory_order_relaxed) + 1) {}

  // Before the driver's free. A thread's own default stream (CU_STREAM_PER_THREAD, or null in a
  // _ptsz call) is known to that thread alone: no other one can name it.
  void freed_in(CUstream, ContextId) noexcept;
  // Before the driver ends it: nobody asks about it any more.
  void stream_ends(CUstream) noexcept;
  // The same of a context's streams; 0: of all.
  void context_ends(ContextId) noexcept;
  // Before a stream capture begins. From then on no stream is touched: an event in one that is
  // captured, or that joins a capture, would be the capture's.
  void capture_begins() noexcept;

  // Events in the streams of the current context, after the frees that were noted.
  class Marks {
   public:
    Marks(PendingFrees&, const driver::RealDriver&, ContextId current);
    ~Marks();
    Marks(const Marks&) = delete;
    Marks& operator=(const Marks&) = delete;
    // Whether there are any that the device has not come to.
    bool any() const noexcept { return count_ != 0; }
    // Synchronises those that it has come to. True: there were some.
    bool synchronise_reached();

   private:
    struct Mark {
      CUevent event;
      std::size_t place;  // of the stream; `places`: the thread's own
      std::uint64_t key;
    };
    static constexpr std::size_t limit = 64;
    // Puts one behind the frees in this stream, with the lock held.
    bool put(CUstream, std::size_t place, std::uint64_t key);
    PendingFrees& pending_;
    const driver::RealDriver& real_;
    Mark marks_[limit];
    std::size_t count_ = 0;
  };

  // Another number where memory was freed in a stream that was not noted.
  std::uint32_t noted() const noexcept { return noted_.load(std::memory_order_relaxed); }

 private:
  // More streams at once wait for the program's own synchronisation.
  static constexpr std::size_t places = 512;
  struct Place {
    std::atomic<std::uint64_t> key{0};  // 0: free
    std::atomic<std::uint64_t> context{0};
    std::atomic<bool> again{false};  // noted again since it was marked
  };
  void remove(Place&, std::uint64_t key) noexcept;

  const std::uint32_t first_version_;
  Place places_[places];
  std::atomic<std::uint32_t> noted_{0};
  // Of what threads know to be noted; changes where something is not any more.
  static inline constinit std::atomic<std::uint32_t> version_{1};
  // Held while an event is put into a stream: the driver does not check a handle well, and one that
  // is destroyed meanwhile must not be used. That neither waits nor calls anything of the
  // program's.
  FutexLock lock_;
  bool captures_ = false;
  // The lock was given up, and a stream destroyed without it: nobody asks any more.
  std::atomic<bool> left_{false};
};

}  // namespace cuwarden::rescue
