#include "tests/bench/stacks/walks.hpp"

#include "runtime_hooks/stacks/slow_walk.hpp"
#include "runtime_hooks/stacks/unwinder.hpp"

namespace cuwarden::bench {
namespace {

alignas(stacks::Unwinder) unsigned char storage[sizeof(stacks::Unwinder)];
[[gnu::constructor]] void make() { new (storage) stacks::Unwinder; }
constexpr ThreadSlot thread{1, 1};
stacks::Unwinder& unwinder() { return *reinterpret_cast<stacks::Unwinder*>(storage); }

}  // namespace

std::size_t walk_by_libgcc(std::uint64_t* frames, std::size_t room) {
  return stacks::walk_slowly({frames, room}).count;
}

std::size_t walk_by_rules(std::uint64_t* frames, std::size_t room) {
  return unwinder().capture(__builtin_frame_address(0), {frames, room}).count;
}

std::size_t walk_and_remember(std::uint64_t* frames, std::size_t room) {
  const void* const frame = __builtin_frame_address(0);
  const auto captured = unwinder().capture(frame, {frames, room});
  unwinder().remember(thread, frame, {frames, room}, 1, unwinder().generation());
  return captured.count;
}

std::size_t recognise_or_walk(std::uint64_t* frames, std::size_t room) {
  const void* const frame = __builtin_frame_address(0);
  if (unwinder().recognise(thread, frame) != 0) return 0;
  const auto captured = unwinder().capture(frame, {frames, room});
  unwinder().remember(thread, frame, {frames, room}, 1, unwinder().generation());
  return captured.count;
}

}  // namespace cuwarden::bench
