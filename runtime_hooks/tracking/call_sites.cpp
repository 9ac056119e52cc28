#include "runtime_hooks/tracking/call_sites.hpp"

#include <alloca.h>

#include <algorithm>
#include <atomic>
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

// True if the calling thread's stack has room for what Python frames take: lists of frames, and the
// texts of functions.
bool has_room_for_python() noexcept {
  constexpr std::uint64_t least_room = 64 << 10;
  const stacks::OwnStack& stack = stacks::own_stack;
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  if (!stack.holds(here)) stacks::find_region_of_stack_pointer(here);
  return stack.holds(here) && (stack.floor == 0 || here - stack.floor >= least_room);
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
  return group_of_unknown(caller, kind, device);
}

// Calls between Python functions leave no trace on the native stack. So a group is recognised by
// the Python frames together with the name of the native stack, which is the group that was first
// made from it.
[[gnu::noinline]] GroupId CallSites::group_with_python(const Caller& caller, Kind kind,
                                                       DeviceOrdinal device, GroupId native,
                                                       std::uint64_t state) noexcept {
  const std::uint32_t generation = unwinder_.generation();
  const PythonStacks::Runs runs = has_room_for_python()
                                      ? python_.runs(state, native.value, generation)
                                      : PythonStacks::Runs::no;
  if (runs == PythonStacks::Runs::unknown)
    return group_of_unmet(caller, kind, device, native, state);
  if (runs == PythonStacks::Runs::no) {
    if (native.value != 0) return ledger_.groups.of_stack_in(native, caller.api, kind, device);
    return group_of_unknown(caller, kind, device);
  }
  if (native.value != 0)
    if (const GroupId found = known_with_python(native, state, generation); found.value != 0)
      return ledger_.groups.of_stack_in(found, caller.api, kind, device);
  return group_of_unmet(caller, kind, device, native, state);
}

// A thread mostly comes back with the frames that it had the last time. A signal handler may
// meanwhile have written another stack with equal frames over the known one: the name tells.
GroupId CallSites::known_with_python(GroupId native, std::uint64_t state,
                                     std::uint32_t generation) noexcept {
  const ThreadSlot thread = ledger_.threads.slot();
  const auto last = python_.known.last_found(thread, native.value, generation);
  if (!last.frames.empty() && python_.has_frames(state, last.frames)) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (python_.known.last_found(thread, native.value, generation).name == last.name)
      return {last.name};
  }
  return find_with_python(native, state, generation);
}

[[gnu::noinline]] GroupId CallSites::find_with_python(GroupId native, std::uint64_t state,
                                                      std::uint32_t generation) noexcept {
  stacks::python::FrameChain chain;
  if (!python_.read(state, chain)) return native;
  return {python_.known.find(ledger_.threads.slot(), native.value, chain, generation)};
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

// The interpreter's own frames are left out when the stacks are merged, so that more frames are
// captured than are kept. A native stack that was cut off is not remembered: its outer frames,
// which are not compared then, may be part of the merged stack.
[[gnu::noinline]] GroupId CallSites::group_of_unmet(const Caller& caller, Kind kind,
                                                    DeviceOrdinal device, GroupId native,
                                                    std::uint64_t state) noexcept {
  const auto [api, frame] = caller;
  const std::uint32_t generation = unwinder_.generation();
  const std::size_t depth = affordable_depth(stacks::depth_limit),
                    kept = std::min(depth, stack_depth_);
  auto* walked = static_cast<std::uint64_t*>(alloca(depth * sizeof(std::uint64_t)));
  auto* pointers = static_cast<std::uint64_t*>(alloca(depth * sizeof(std::uint64_t)));
  auto* frames = static_cast<std::uint64_t*>(alloca(kept * sizeof(std::uint64_t)));
  const stacks::Captured captured = unwinder_.capture(frame, {walked, depth}, nullptr, pointers);
  stacks::python::FrameChain chain;
  const bool is_python = python_.is_inside({walked, captured.count}) && python_.read(state, chain);
  PythonStacks::Stored stored;
  if (is_python) {
    stored = python_.merge({{walked, captured.count},
                            {pointers, captured.count},
                            captured.outermost_sp,
                            captured.truncated},
                           chain, {frames, kept});
  } else {
    stored.count = std::min(captured.count, kept);
    stored.truncated = captured.truncated || captured.count > kept;
    std::copy_n(walked, stored.count, frames);
  }
  bool added = false;
  const StackId stack = ledger_.stacks.intern({frames, stored.count}, stored.truncated, &added);
  const GroupId group = ledger_.groups.get({stack, api, kind, device});
  if (added || stack.value == 0 || group.value == 0 || captured.truncated || !stored.is_whole)
    return group;
  const ThreadSlot thread = ledger_.threads.slot();
  const std::uint32_t name = native.value != 0 ? native.value : group.value;
  python_.note(name, generation, is_python);
  if (is_python) python_.known.keep(thread, name, chain, generation, group.value);
  if (native.value == 0)
    unwinder_.remember(thread, frame, {walked, depth}, group.value, generation);
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
