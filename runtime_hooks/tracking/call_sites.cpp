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
  const GroupId known{unwinder_.recognise(caller.frame)};
  if (const std::uint64_t state = python_.state_of_thread(); state != 0)
    return group_with_python(caller, kind, device, known, state);
  if (known.value != 0) return ledger_.groups.of_stack_in(known, caller.api, kind, device);
  return group_of_unknown(caller, kind, device, known, nullptr);
}

// Calls between Python functions leave no trace on the native stack. So a group is recognised by
// the Python frames together with the name of the native stack, which is the group that was first
// made from it.
[[gnu::noinline]] GroupId CallSites::group_with_python(const Caller& caller, Kind kind,
                                                       DeviceOrdinal device, GroupId native,
                                                       std::uint64_t python_state) noexcept {
  stacks::python::FrameChain chain;
  if (!python_.read(python_state, chain)) {
    if (native.value != 0) return ledger_.groups.of_stack_in(native, caller.api, kind, device);
    return group_of_unknown(caller, kind, device, native, nullptr);
  }
  if (native.value != 0) {
    const GroupId known{
        python_.known.find(ledger_.threads.slot(), native.value, chain, unwinder_.generation())};
    if (known.value != 0) return ledger_.groups.of_stack_in(known, caller.api, kind, device);
  }
  return group_of_unknown(caller, kind, device, native, &chain);
}

[[gnu::noinline]] GroupId CallSites::group_of_unknown(
    const Caller& caller, Kind kind, DeviceOrdinal device, GroupId native,
    const stacks::python::FrameChain* chain) noexcept {
  const auto [api, frame] = caller;
  const std::uint32_t generation = unwinder_.generation();
  const std::size_t depth = affordable_depth(stack_depth_);
  auto* frames = static_cast<std::uint64_t*>(alloca(depth * sizeof(std::uint64_t)));
  stacks::python::Merged stored;
  if (chain == nullptr) {
    const stacks::Captured captured = unwinder_.capture(frame, {frames, depth});
    stored = {captured.count, captured.truncated};
  } else {
    stored = capture_with(*chain, frame, {frames, depth});
  }
  bool added = false;
  const StackId stack = ledger_.stacks.intern({frames, stored.count}, stored.truncated, &added);
  const GroupId group = ledger_.groups.get({stack, api, kind, device});
  // A stack seen only once is not cached: filling the cache costs more than one walk. Neither is a
  // stack for which the full ledger has no row.
  if (added || stack.value == 0 || group.value == 0) return group;
  const ThreadSlot thread = ledger_.threads.slot();
  if (chain != nullptr)
    python_.known.keep(thread, native.value != 0 ? native.value : group.value, *chain, generation,
                       group.value);
  if (native.value == 0)
    unwinder_.remember(thread, frame, {frames, depth}, group.value, generation);
  return group;
}

// The interpreter's own frames are left out when the stacks are merged, so that more frames are
// captured than are kept.
[[gnu::noinline]] stacks::python::Merged CallSites::capture_with(
    const stacks::python::FrameChain& chain, const void* frame,
    std::span<std::uint64_t> frames) noexcept {
  const std::size_t depth = affordable_depth(stacks::depth_limit);
  auto* native = static_cast<std::uint64_t*>(alloca(2 * depth * sizeof(std::uint64_t)));
  auto* stack_pointers = native + depth;
  const stacks::Captured captured =
      unwinder_.capture(frame, {native, depth}, nullptr, stack_pointers);
  return python_.merge({{native, captured.count},
                        {stack_pointers, captured.count},
                        captured.outermost_sp,
                        captured.truncated},
                       chain, frames);
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
