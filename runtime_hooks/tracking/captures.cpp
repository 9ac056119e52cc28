#include "runtime_hooks/tracking/captures.hpp"

#include <algorithm>

namespace cuwarden::tracking {
namespace {

// A thread's own default stream has the same handle in all threads. The thread is told by its
// control block, for which no system call is needed.
std::uint64_t this_thread() noexcept {
  return reinterpret_cast<std::uint64_t>(__builtin_thread_pointer());
}

std::uint64_t key_of(CUstream stream, bool per_thread) noexcept {
  constexpr std::uint64_t of_a_thread = std::uint64_t{1} << 63;
  if (stream == CU_STREAM_PER_THREAD || (stream == nullptr && per_thread))
    return of_a_thread | this_thread();
  return reinterpret_cast<std::uint64_t>(stream);
}

}  // namespace

bool Captures::begins(CUstream stream, bool per_thread, ContextId context,
                      CUstreamCaptureMode mode) noexcept {
  const std::uint64_t key = key_of(stream, per_thread);
  if (key == 0) return false;  // the legacy stream, in which the driver refuses to begin a capture
  const Locked locked(lock_);
  if (locked && std::ranges::find(all_, key, &Capture::key) != std::end(all_)) return false;
  // Counted first, so that no thread finds the capture in progress and remembered.
  if (!locked) unremembered_.fetch_add(1);
  count_.fetch_add(1);
  let_waits_begin();
  if (!locked) return false;
  if (const auto free = std::ranges::find(all_, 0u, &Capture::key); free != std::end(all_))
    *free = {key, context, this_thread(), mode};
  else
    ++without_room_;
  return true;
}

// Captures for which the table had no room count as forbidding.
bool Captures::forbid_allocations(CUstreamCaptureMode mode) noexcept {
  if (!any() || mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  const Locked locked(lock_);
  if (!locked || without_room_ != 0 || unremembered_.load() != 0) return true;
  return std::ranges::any_of(all_, [&](const Capture& capture) {
    if (capture.key == 0 || capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
    return capture.thread == this_thread() ||
           (capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL && mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
  });
}

void Captures::let_waits_begin() const noexcept {
  constexpr std::uint64_t patience_ns = 1'000'000, pause_ns = 10'000;
  if (waits_.load() == 0) return;
  const std::uint64_t until_ns = clock_.now_ns() + patience_ns;
  while (waits_.load() != 0 && clock_.now_ns() < until_ns) clock_.sleep_ns(pause_ns);
}

void Captures::remove(Capture& capture) noexcept {
  capture = {};
  count_.fetch_sub(1);
}

// An unknown capture is one of those for which the table had no room.
void Captures::ended(CUstream stream, bool per_thread) noexcept {
  if (!any()) return;
  const std::uint64_t key = key_of(stream, per_thread);
  const Locked locked(lock_);
  if (!locked || key == 0) return;
  if (const auto found = std::ranges::find(all_, key, &Capture::key); found != std::end(all_)) {
    remove(*found);
  } else if (without_room_ > 0) {
    --without_room_;
    count_.fetch_sub(1);
  }
}

void Captures::stream_ends(CUstream stream) noexcept {
  if (!any() || stream == nullptr) return;
  const Locked locked(lock_);
  if (!locked) return;
  for (Capture& capture : all_)
    if (capture.key == reinterpret_cast<std::uint64_t>(stream)) remove(capture);
}

void Captures::context_ends(ContextId context) noexcept {
  if (!any()) return;
  const Locked locked(lock_);
  if (!locked) return;
  for (Capture& capture : all_)
    if (capture.key != 0 && capture.context == context) remove(capture);
}

}  // namespace cuwarden::tracking
