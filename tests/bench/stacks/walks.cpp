#include "tests/bench/stacks/walks.hpp"

#include "runtime_hooks/stacks/slow_walk.hpp"
#include "runtime_hooks/stacks/unwinder.hpp"

namespace cuwarden::bench {
namespace {

alignas(stacks::Unwinder) unsigned char storage[sizeof(stacks::Unwinder)];
[[gnu::constructor]] void make() { new (storage) stacks::Unwinder; }
constexpr ThreadSlot thread{1, 1};
stacks::Unwinder& unwinder() { return *reinterpret_cast<stacks::Unwinder*>(storage); }

[[gnu::noinline]] std::size_t walk_from(const void* frame, std::uint64_t* frames,
                                        std::size_t room) {
  const auto captured = unwinder().capture(frame, {frames, room});
  unwinder().remember(thread, frame, {frames, room}, 1, unwinder().generation());
  return captured.count;
}

}  // namespace

std::size_t walk_nothing(std::uint64_t*, std::size_t) { return 0; }

std::size_t walk_by_libgcc(std::uint64_t* frames, std::size_t room) {
  return stacks::walk_slowly({frames, room}).count;
}

std::size_t walk_by_rules(std::uint64_t* frames, std::size_t room) {
  return unwinder().capture(__builtin_frame_address(0), {frames, room}).count;
}

std::size_t walk_and_remember(std::uint64_t* frames, std::size_t room) {
  const std::size_t count = walk_from(__builtin_frame_address(0), frames, room);
  asm volatile("");  // Prevents a jump, so that this frame stays.
  return count;
}

std::size_t recognise_or_walk(std::uint64_t* frames, std::size_t room) {
  const void* const frame = __builtin_frame_address(0);
  if (__builtin_expect(unwinder().recognise(frame) != 0, true)) return 0;
  const std::size_t count = walk_from(frame, frames, room);
  asm volatile("");  // Prevents a jump, so that this frame stays.
  return count;
}

}  // namespace cuwarden::bench
