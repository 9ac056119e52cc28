// Call stacks of the calling thread, as rows of the ledger: the group that an allocation belongs
// to, and the whole stack where a decision needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/stacks/unwinder.hpp"
#include "runtime_hooks/tracking/caller.hpp"

namespace cuwarden::tracking {

class CallSites {
 public:
  // `stack_depth`: frames kept for each stack; 0: no stacks are captured.
  CallSites(ledger::Writer& ledger, std::size_t stack_depth) noexcept
      : ledger_(ledger), stack_depth_(stack_depth), unwinder_(ledger.header().stacks_cut) {
    static_assert(ledger::stack_exceptions == stacks::exceptions);
  }

  // Returns the group of allocations that this call belongs to; 0 where the ledger is full. Leaves
  // errno as it was.
  GroupId group_of(const Caller&, Kind, DeviceOrdinal) noexcept;
  // As group_of(), but may change errno.
  GroupId group_unguarded(const Caller&, Kind, DeviceOrdinal) noexcept;
  // Returns the thread's stack from its first frame on; 0 where some of it is not known. Costs more
  // than group_of(): the walk is as deep as can be, and is not cached.
  StackId whole_stack(const Caller&) noexcept;
  // Walks the calling thread's stack from the function with this frame on, as Unwinder::capture()
  // does.
  stacks::Captured frames_from(const void* frame, std::span<std::uint64_t> into) noexcept {
    return unwinder_.capture(frame, into);
  }
  // Forgets all rules and stacks of unloaded code; to be called after each dlclose.
  void modules_changed() noexcept;

 private:
  GroupId group_of_unknown(const Caller&, Kind, DeviceOrdinal) noexcept;

  ledger::Writer& ledger_;
  const std::size_t stack_depth_;
  stacks::Unwinder unwinder_;
};

}  // namespace cuwarden::tracking
