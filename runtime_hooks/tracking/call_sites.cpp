#include "runtime_hooks/tracking/call_sites.hpp"

#include <alloca.h>

#include <algorithm>
#include <cstdint>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/ledger/write/allocation_records/group_table.hpp"
#include "runtime_hooks/ledger/write/allocation_records/threads.hpp"
#include "runtime_hooks/ledger/write/stacks/stack_table.hpp"
#include "runtime_hooks/stacks/stack_bounds.hpp"

namespace cuwarden::tracking {
namespace {

// Returns `wanted` frames, or fewer if the thread's stack has no room for so many addresses: a
// thread may have as little as 16 KiB.
std::size_t affordable_depth(std::size_t wanted) noexcept {
  constexpr std::uint64_t left_to_others = 8 << 10;
  constexpr std::size_t least = 32, always_affordable = 128;
  if (wanted <= always_affordable) return wanted;
  const stacks::OwnStack& stack = stacks::own_stack;
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  if (!stack.asked) stacks::find_region_of_stack_pointer(here);
  if (!stack.confirmed || stack.floor == 0 || here < stack.floor || here >= stack.top)
    return wanted;
  const std::uint64_t room = here - stack.floor;
  const std::uint64_t spare = room > left_to_others ? room - left_to_others : 0;
  return std::min<std::size_t>(wanted,
                               std::max<std::size_t>(least, spare / 2 / sizeof(std::uint64_t)));
}

}  // namespace

GroupId CallSites::group_of(const Caller& caller, Kind kind, DeviceOrdinal device) noexcept {
  const ErrnoGuard keep;
  return group_unguarded(caller, kind, device);
}

// A recognised stack yields the group that was last made from it. That group is nearly always the
// wanted one, and otherwise one with the same stack.
GroupId CallSites::group_unguarded(const Caller& caller, Kind kind, DeviceOrdinal device) noexcept {
  if (stack_depth_ == 0) return ledger_.groups.get({{}, caller.api, kind, device});
  if (const GroupId known{unwinder_.recognise(caller.frame)}; known.value != 0)
    return ledger_.groups.of_stack_in(known, caller.api, kind, device);
  return group_of_unknown(caller, kind, device);
}

[[gnu::noinline]] GroupId CallSites::group_of_unknown(const Caller& caller, Kind kind,
                                                      DeviceOrdinal device) noexcept {
  const auto [api, frame] = caller;
  const std::uint32_t generation = unwinder_.generation();
  const std::size_t depth = affordable_depth(stack_depth_);
  auto* frames = static_cast<std::uint64_t*>(alloca(depth * sizeof(std::uint64_t)));
  const stacks::Captured captured = unwinder_.capture(frame, {frames, depth});
  bool added = false;
  const StackId stack = ledger_.stacks.intern({frames, captured.count}, captured.truncated, &added);
  const GroupId group = ledger_.groups.get({stack, api, kind, device});
  // A stack seen only once is not cached: filling the cache costs more than one walk. Neither is a
  // stack for which the full ledger has no row.
  if (!added && stack.value != 0 && group.value != 0)
    unwinder_.remember(ledger_.threads.slot(), frame, {frames, depth}, group.value, generation);
  return group;
}

StackId CallSites::whole_stack(const Caller& caller) noexcept {
  std::uint64_t frames[stacks::depth_limit];
  const stacks::Captured captured = unwinder_.capture(caller.frame, frames);
  return captured.whole ? ledger_.stacks.intern({frames, captured.count}, false) : StackId{};
}

void CallSites::modules_changed() noexcept {
  unwinder_.modules_changed();
  ledger_.stacks.modules_changed();
  // A stack that was named between the two calls above may be retired by now.
  unwinder_.forget_names();
}

}  // namespace cuwarden::tracking
