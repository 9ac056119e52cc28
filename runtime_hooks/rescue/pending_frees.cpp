#include "runtime_hooks/rescue/pending_frees.hpp"

#include "runtime_hooks/driver/device_reading.hpp"

namespace cuwarden::rescue {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

CUstream stream_of(std::uint64_t key) {
  return reinterpret_cast<CUstream>(key & ~std::uint64_t{1});
}

}  // namespace

[[gnu::tls_model("initial-exec")]] constinit thread_local PendingFrees::Last PendingFrees::last_{};

void PendingFrees::freed_in(CUstream stream, ContextId context) noexcept {
  const std::uint64_t key = key_of(stream);
  if (noted_last(stream) || stream == CU_STREAM_PER_THREAD) return;
  Stream* vacant = nullptr;
  for (Stream& known : streams_) {
    const std::uint64_t found = known.key.load(relaxed);
    if (found == key) {
      last_ = {key, version_.load(relaxed)};
      return;
    }
    if (found == 0 && vacant == nullptr) vacant = &known;
  }
  std::uint64_t none = 0;
  // Another thread may take the place: then this stream is noted with its next free.
  if (vacant == nullptr || !vacant->key.compare_exchange_strong(none, key, relaxed)) return;
  vacant->context.store(context.value, std::memory_order_release);
  last_ = {key, version_.fetch_add(1, relaxed) + 1};
}

void PendingFrees::stream_ends(CUstream stream) noexcept {
  const std::uint64_t key = key_of(stream);
  const Locked locked(lock_);
  if (!locked) left_.store(true);
  for (Stream& known : streams_) {
    std::uint64_t expected = key;
    known.key.compare_exchange_strong(expected, 0, relaxed);
  }
  version_.fetch_add(1, relaxed);
}

void PendingFrees::all_end() noexcept {
  const Locked locked(lock_);
  if (!locked) left_.store(true);
  for (Stream& known : streams_) known.key.store(0, relaxed);
  version_.fetch_add(1, relaxed);
}

PendingFrees::State PendingFrees::synchronise(const driver::RealDriver& real, CUstream stream) {
  // A question about a stream under capture ends the capture, and one about the default stream that
  // of any other which waits for it.
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (real.cuStreamIsCapturing == nullptr ||
      real.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
      status != CU_STREAM_CAPTURE_STATUS_NONE)
    return State::unknown;
  const CUresult found = real.cuStreamQuery(stream);
  if (found == CUDA_ERROR_NOT_READY) return State::busy;
  if (found != CUDA_SUCCESS || real.cuStreamSynchronize(stream) != CUDA_SUCCESS)
    return State::unknown;
  return State::synchronised;
}

PendingFrees::Found PendingFrees::synchronise_idle(const driver::RealDriver& real,
                                                   ContextId current) {
  Found all;
  if (real.cuStreamQuery == nullptr || real.cuStreamSynchronize == nullptr) return all;
  const driver::RelaxedCaptures captures(real);
  if (!captures) return all;
  for (Stream& known : streams_) {
    const std::uint64_t key = known.key.load(relaxed);
    if (key == 0) continue;
    const Locked locked(lock_);
    if (!locked || left_.load()) return all;
    if (key == mark && known.context.load(std::memory_order_acquire) != current.value) continue;
    // Out of the table first: a free that comes meanwhile puts it there again.
    std::uint64_t expected = key;
    if (!known.key.compare_exchange_strong(expected, 0, relaxed)) continue;
    version_.fetch_add(1, relaxed);
    const State state = synchronise(real, stream_of(key));
    if (state == State::synchronised) {
      all.synchronised = true;
      continue;
    }
    all.busy = all.busy || state == State::busy;
    expected = 0;
    known.key.compare_exchange_strong(expected, key, relaxed);
  }
  return all;
}

}  // namespace cuwarden::rescue
