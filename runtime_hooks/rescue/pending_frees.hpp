// Streams in which memory was freed and that nobody has synchronised since, as far as it was seen.
//
// Memory that is freed in stream order goes back to its pool at once, but nobody else gets it
// before the stream is synchronised. Measured: neither time nor cuMemPoolTrimTo helps, nor that the
// free was reached, nor a query that says so, nor the synchronisation of another stream.
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
  PendingFrees() noexcept { version_.fetch_add(1, std::memory_order_relaxed); }

  // Before the driver's free. A stream of the thread's own (CU_STREAM_PER_THREAD, or null in a
  // _ptsz call) is not kept: no other thread can name it.
  void freed_in(CUstream, ContextId) noexcept;
  // Whether that was what the thread did last, and is noted still: most frees are in the stream of
  // the one before.
  static bool noted_last(CUstream stream) noexcept {
    return last_.key == key_of(stream) && last_.version == version_.load(std::memory_order_relaxed);
  }
  // Before the driver ends it: nobody asks about it any more.
  void stream_ends(CUstream) noexcept;
  // The same of all streams, where a context ends.
  void all_end() noexcept;

  struct Found {
    bool busy = false;          // one has work to do
    bool synchronised = false;  // one had none, and was synchronised
  };
  // Of the default stream only where its context is current.
  Found synchronise_idle(const driver::RealDriver&, ContextId current);

  // Another number where a stream was met since.
  std::uint32_t version() const noexcept { return version_.load(std::memory_order_relaxed); }

 private:
  // The default stream's handle is null: keys are handles with the lowest bit set, which no pointer
  // to a stream has, and CU_STREAM_LEGACY is the same stream.
  static constexpr std::uint64_t mark = 1;
  static std::uint64_t key_of(CUstream stream) noexcept {
    return stream == CU_STREAM_LEGACY ? mark : reinterpret_cast<std::uint64_t>(stream) | mark;
  }
  // Initial-exec, as all of the shim's.
  struct Last {
    std::uint64_t key = 0;
    std::uint32_t version = 0;
  };
  [[gnu::tls_model("initial-exec")]] static constinit thread_local Last last_;

  struct Stream {
    std::atomic<std::uint64_t> key{0};  // 0: free
    std::atomic<std::uint64_t> context{0};
  };
  enum class State : std::uint8_t { unknown, busy, synchronised };
  State synchronise(const driver::RealDriver&, CUstream);

  // Frees in more streams at once wait for the program's own synchronisation.
  static constexpr std::size_t limit = 512;
  Stream streams_[limit];
  static inline constinit std::atomic<std::uint32_t> version_{1};
  // Held while the driver is asked about a stream: it does not check a handle well, and one that is
  // destroyed meanwhile must not be used. The driver calls nothing of the program's in between, and
  // a stream that is synchronised then had nothing to do a moment before.
  FutexLock lock_;
  // The lock was given up, and a stream destroyed without it: nobody asks any more.
  std::atomic<bool> left_{false};
};

}  // namespace cuwarden::rescue
