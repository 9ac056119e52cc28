#include "runtime_hooks/families/captures.hpp"

#include <sys/syscall.h>
#include <unistd.h>

namespace cuwarden::families {
namespace {

// A thread's own default stream has the same handle in all threads.
std::uint64_t key_of(CUstream stream, bool per_thread) noexcept {
  constexpr std::uint64_t of_a_thread = std::uint64_t{1} << 63;
  if (stream == CU_STREAM_PER_THREAD || (stream == nullptr && per_thread))
    return of_a_thread | static_cast<std::uint64_t>(syscall(SYS_gettid));
  return reinterpret_cast<std::uint64_t>(stream);
}

}  // namespace

void Captures::begins(CUstream stream, bool per_thread, ContextId context) noexcept {
  const std::uint64_t key = key_of(stream, per_thread);
  if (key == 0) return;  // the legacy stream: the driver refuses
  for (const Place& place : places_)
    if (place.key.load() == key) return;  // it is one capture
  count_.fetch_add(1);
  for (Place& place : places_) {
    std::uint64_t free = 0;
    if (!place.key.compare_exchange_strong(free, key)) continue;
    place.context.store(context.value);
    return;
  }
}

void Captures::free_place(Place& place, std::uint64_t key) noexcept {
  if (place.key.compare_exchange_strong(key, 0)) count_.fetch_sub(1);
}

void Captures::ended(CUstream stream, bool per_thread) noexcept {
  const std::uint64_t key = any() ? key_of(stream, per_thread) : 0;
  for (Place& place : places_)
    if (key != 0 && place.key.load() == key) free_place(place, key);
}

void Captures::context_ends(ContextId context) noexcept {
  for (Place& place : places_) {
    const std::uint64_t key = place.key.load();
    if (key != 0 && (context.value == 0 || place.context.load() == context.value))
      free_place(place, key);
  }
}

}  // namespace cuwarden::families
