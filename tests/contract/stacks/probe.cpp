#include "tests/contract/stacks/probe.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <span>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/hash.hpp"
#include "runtime_hooks/stacks/slow_walk.hpp"
#include "runtime_hooks/stacks/stack_bounds.hpp"
#include "runtime_hooks/stacks/unwinder.hpp"

namespace {

using namespace cuwarden::stacks;

constexpr std::size_t most = 512;

// The unwinder is never destroyed, because threads may compare while the process ends.
alignas(Unwinder) unsigned char storage[sizeof(Unwinder)];
Unwinder& unwinder() {
  static Unwinder* const made = new (storage) Unwinder;
  return *made;
}
// Finds the thread's stack as the shim does.
bool ask_libc(std::uint64_t& low, std::uint64_t& high) noexcept {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return false;
  void* begin = nullptr;
  std::size_t bytes = 0;
  pthread_attr_getstack(&attributes, &begin, &bytes);
  pthread_attr_destroy(&attributes);
  low = reinterpret_cast<std::uint64_t>(begin);
  high = low + bytes;
  return true;
}
[[gnu::constructor]] void make_early() {
  ask_thread_stacks(ask_libc);
  unwinder();
}

std::atomic<std::uint64_t> compared, different, recognised, deepest;
char difference[32768];

void write_difference(const char* what, std::span<const std::uint64_t> found,
                      std::span<const std::uint64_t> expected) {
  std::size_t at = 0;
  const auto add = [&](const char* format, auto... values) {
    if (at >= sizeof difference) return;
    const int length = std::snprintf(difference + at, sizeof difference - at, format, values...);
    if (length > 0) at += static_cast<std::size_t>(length);
  };
  add("%s: %zu frames, libgcc has %zu\n", what, found.size(), expected.size());
  for (std::size_t i = 0; i < found.size() || i < expected.size(); ++i)
    add("  %2zu %#16llx %#16llx\n", i, i < found.size() ? static_cast<long long>(found[i]) : 0LL,
        i < expected.size() ? static_cast<long long>(expected[i]) : 0LL);
}

// Returns a number of the thread that stands for a ThreadSlot: fewer of the test's threads live at
// a time than there are numbers.
cuwarden::ThreadSlot slot() {
  static std::atomic<std::uint32_t> next{0};
  static thread_local std::uint32_t mine = next++;
  return {1 + mine % (cuwarden::ThreadSlot::count - 1), 1 + mine};
}

std::uint32_t name_of(std::span<const std::uint64_t> frames, bool truncated) {
  return static_cast<std::uint32_t>(cuwarden::hash_words(frames) >> 32) << 2 | 2u |
         std::uint32_t{truncated};
}

// Compares the stack by rules with libgcc's. Inlined, so that the frame is the exported function's.
[[gnu::always_inline]] inline int compare(std::size_t room) {
  const void* const frame = __builtin_frame_address(0);
  const cuwarden::ErrnoGuard keep;
  std::uint64_t fast[most], slow[most];
  if (room > most) room = most;
  const Captured expected = walk_slowly({slow, room});
  const std::span<const std::uint64_t> right(slow, expected.count);
  const std::uint32_t name = name_of(right, expected.truncated);
  ++compared;
  if (expected.count > deepest) deepest = expected.count;

  // A stack cut at another depth counts as another stack, so only stacks of the full depth get
  // names.
  bool good = true;
  if (const std::uint32_t known = room == most ? unwinder().recognise(frame) : 0) {
    ++recognised;
    good = known == name;
    if (!good) write_difference("recognised", {}, right);
  }
  const std::uint32_t generation = unwinder().generation();
  const std::uint64_t ended_before = unwinder().count_of(Exception::not_expressible);
  const Captured captured = unwinder().capture(frame, {fast, room});
  const std::span<const std::uint64_t> found(fast, captured.count);
  const bool whole = captured.count == expected.count && captured.truncated == expected.truncated;
  const bool ends_early = captured.count < expected.count && captured.truncated &&
                          unwinder().count_of(Exception::not_expressible) > ended_before;
  if ((!whole && !ends_early) || std::memcmp(fast, slow, found.size_bytes()) != 0) {
    write_difference("walked", found, right);
    good = false;
  }
  if (room == most && good && !ends_early)
    unwinder().remember(slot(), frame, {fast, room}, name, generation);
  if (!good) ++different;
  return good ? static_cast<int>(captured.count) : -1;
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default"), noinline))

EXPORTED int compare_stacks() { return compare(most); }
EXPORTED int compare_stacks_up_to(std::size_t frames) { return compare(frames); }

EXPORTED int walk_stack(std::uint64_t* frames, std::size_t room) {
  return static_cast<int>(unwinder().capture(__builtin_frame_address(0), {frames, room}).count);
}

EXPORTED void probe_modules_changed() { unwinder().modules_changed(); }

EXPORTED StacksSeen stacks_seen() {
  const auto count = [](Exception reason) { return unwinder().count_of(reason); };
  return {compared,
          different,
          recognised,
          deepest,
          count(Exception::not_expressible),
          count(Exception::foreign_code),
          count(Exception::no_description),
          count(Exception::malformed),
          count(Exception::unreadable),
          count(Exception::endless)};
}

EXPORTED const char* last_difference() { return difference; }
