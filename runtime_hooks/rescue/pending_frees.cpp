#include "runtime_hooks/rescue/pending_frees.hpp"

namespace cuwarden::rescue {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

// The default stream's handle is null, in each context: its key is the context's with the lowest
// bit set, which no handle has. CU_STREAM_LEGACY is the same stream.
constexpr std::uint64_t of_context = 1;
bool is_default(CUstream stream) { return stream == nullptr || stream == CU_STREAM_LEGACY; }
std::uint64_t key_of(CUstream stream, ContextId context) {
  return is_default(stream) ? context.value | of_context : reinterpret_cast<std::uint64_t>(stream);
}
CUstream stream_of(std::uint64_t key) {
  return (key & of_context) != 0 ? nullptr : reinterpret_cast<CUstream>(key);
}

// What the thread noted last: most frees are in the stream of the one before. Initial-exec, as all
// of the shim's.
struct Last {
  std::uint64_t key = 0;
  std::uint32_t version = 0;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Last last{};

// Whether the thread freed something in its own default stream of this context.
struct OwnStream {
  std::uint64_t context = 0;        // 0: nothing pends
  std::uint32_t first_version = 0;  // of whose frees
  bool again = false;               // since it was marked
};
[[gnu::tls_model("initial-exec")]] constinit thread_local OwnStream own_stream{};

}  // namespace

void PendingFrees::freed_in(CUstream stream, ContextId context) noexcept {
  if (stream == CU_STREAM_PER_THREAD) {
    if (own_stream.context != context.value || own_stream.first_version != first_version_)
      noted_.fetch_add(1, relaxed);
    own_stream = {context.value, first_version_, true};
    return;
  }
  const std::uint64_t key = key_of(stream, context);
  // Read first: what is removed from now on is noted again with the next free.
  const std::uint32_t version = version_.load(std::memory_order_acquire);
  if (last.key == key && last.version == version) return;
  Place* vacant = nullptr;
  for (Place& place : places_) {
    const std::uint64_t found = place.key.load(relaxed);
    if (found == key) {
      place.again.store(true, relaxed);
      last = {key, version};
      return;
    }
    if (found == 0 && vacant == nullptr) vacant = &place;
  }
  std::uint64_t none = 0;
  // Another thread may take the place: then this stream is noted with its next free.
  if (vacant == nullptr || !vacant->key.compare_exchange_strong(none, key, relaxed)) return;
  vacant->again.store(true, relaxed);
  vacant->context.store(context.value, std::memory_order_release);
  noted_.fetch_add(1, relaxed);
  last = {key, version};
}

void PendingFrees::remove(Place& place, std::uint64_t key) noexcept {
  if (place.key.compare_exchange_strong(key, 0, relaxed)) version_.fetch_add(1, relaxed);
}

void PendingFrees::stream_ends(CUstream stream) noexcept {
  const Locked locked(lock_);
  if (!locked) left_.store(true);
  for (Place& place : places_) remove(place, reinterpret_cast<std::uint64_t>(stream));
}

void PendingFrees::context_ends(ContextId context) noexcept {
  const Locked locked(lock_);
  if (!locked) left_.store(true);
  for (Place& place : places_) {
    if (context.value == 0 || place.context.load(std::memory_order_acquire) == context.value)
      remove(place, place.key.load(relaxed));
  }
}

void PendingFrees::capture_begins() noexcept {
  const Locked locked(lock_);
  if (locked)
    captures_ = true;
  else
    left_.store(true);
}

PendingFrees::Marks::Marks(PendingFrees& pending, const driver::RealDriver& real, ContextId current)
    : pending_(pending), real_(real) {
  if (real.cuEventCreate == nullptr || real.cuEventRecord == nullptr ||
      real.cuEventQuery == nullptr || real.cuEventSynchronize == nullptr ||
      real.cuEventDestroy_v2 == nullptr)
    return;
  if (own_stream.context == current.value && current.value != 0 &&
      own_stream.first_version == pending.first_version_) {
    const Locked locked(pending.lock_);
    if (!locked || pending.left_.load() || pending.captures_) return;
    own_stream.again = false;
    if (!put(CU_STREAM_PER_THREAD, places, 0)) return;
  }
  for (std::size_t i = 0; i < places && count_ < limit; ++i) {
    Place& place = pending.places_[i];
    if (place.key.load(relaxed) == 0) continue;
    const Locked locked(pending.lock_);
    if (!locked || pending.left_.load() || pending.captures_) return;
    const std::uint64_t key = place.key.load(relaxed);
    if (key == 0 || place.context.load(std::memory_order_acquire) != current.value) continue;
    // Frees from now on come after the event, and are noted again.
    place.again.store(false, relaxed);
    version_.fetch_add(1, relaxed);
    if (!put(stream_of(key), i, key)) return;
  }
}

bool PendingFrees::Marks::put(CUstream stream, std::size_t place, std::uint64_t key) {
  CUevent event = nullptr;
  if (real_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return false;
  marks_[count_++] = {event, place, key};
  if (real_.cuEventRecord(event, stream) == CUDA_SUCCESS) return true;
  real_.cuEventDestroy_v2(event);
  --count_;
  return true;
}

PendingFrees::Marks::~Marks() {
  for (std::size_t i = 0; i < count_; ++i) real_.cuEventDestroy_v2(marks_[i].event);
}

bool PendingFrees::Marks::synchronise_reached() {
  bool found = false;
  for (std::size_t i = 0; i < count_;) {
    const Mark mark = marks_[i];
    const CUresult state = real_.cuEventQuery(mark.event);
    if (state == CUDA_ERROR_NOT_READY) {
      ++i;
      continue;
    }
    if (state == CUDA_SUCCESS && real_.cuEventSynchronize(mark.event) == CUDA_SUCCESS) {
      found = true;
      if (mark.place == places) {
        if (!own_stream.again) own_stream = {};
      } else if (Place& place = pending_.places_[mark.place]; !place.again.load(relaxed)) {
        pending_.remove(place, mark.key);
      }
    }
    real_.cuEventDestroy_v2(mark.event);
    marks_[i] = marks_[--count_];
  }
  return found;
}

}  // namespace cuwarden::rescue
