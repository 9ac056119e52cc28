// Accesses plain fields of up to 8 bytes atomically, in rows that other threads or processes read
// at the same time. The loads acquire and the stores release. So a reader of a seqlock can check
// the version after its loads, and a writer's stores stay behind its change of the version. No
// fences are needed, which ThreadSanitizer does not model. On x86-64 all of these are plain moves.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace cuwarden {

// The memory order for an atomic variable that guards no other data: only its own value matters.
inline constexpr auto relaxed = std::memory_order_relaxed;

// Loads the value of a plain field atomically, with acquire order. The field has at most 8 bytes.
template <class T>
T load_field(const T& field) noexcept {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  T value;
  __atomic_load(&field, &value, __ATOMIC_ACQUIRE);
  return value;
}

// Stores a value into a plain field atomically, with release order. The field has at most 8 bytes.
template <class T>
void store_field(T& field, std::type_identity_t<T> value) noexcept {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  __atomic_store(&field, &value, __ATOMIC_RELEASE);
}

// Sets `highest` to `value` if `value` is larger. Atomic, with relaxed order.
inline void raise_to(std::atomic<std::uint64_t>& highest, std::uint64_t value) noexcept {
  std::uint64_t seen = highest.load(std::memory_order_relaxed);
  while (seen < value && !highest.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace cuwarden
