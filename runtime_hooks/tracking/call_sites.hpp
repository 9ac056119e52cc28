// Captures call stacks of the calling thread, and enters them into the ledger. An allocation's
// group is found by its stack, up to a configured depth. Some decisions need the whole stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/stacks/unwinder.hpp"
#include "runtime_hooks/tracking/caller.hpp"
#include "runtime_hooks/tracking/python_stacks.hpp"

namespace cuwarden::tracking {

// Captures call stacks of the calling thread and enters them into the ledger. Allocations with
// equal stack, function, kind and device are one group.
class CallSites {
 public:
  // `stack_depth` is the largest number of frames that is kept for each call stack; 0: groups have
  // no stacks. `python` finds the Python interpreter of the process; null: none is looked for.
  // `ledger` and `python` outlive the object. `python_frames`: true if Python frames become part of
  // the stacks.
  CallSites(ledger::Writer& ledger, std::size_t stack_depth, HostProcess* python = nullptr,
            bool python_frames = true) noexcept
      : ledger_(ledger),
        stack_depth_(stack_depth),
        unwinder_(ledger.file.header().stacks_cut),
        python_(ledger, python, python_frames) {
    static_assert(ledger::stack_exceptions == stacks::exceptions);
  }

  // Returns the ledger's id of the group to which an allocation by this call belongs, and makes the
  // group if it is new. Returns 0 if the ledger is full. `Kind` and `DeviceOrdinal` (no_device: the
  // host) are those of the memory. Leaves errno as it was.
  GroupId group_of(const Caller&, Kind, DeviceOrdinal) noexcept;
  // Returns the ledger's id of the group to which an allocation by this call belongs, and makes the
  // group if it is new. Returns 0 if the ledger is full. `Kind` and `DeviceOrdinal` (no_device: the
  // host) are those of the memory. May change errno.
  GroupId group_unguarded(const Caller&, Kind, DeviceOrdinal) noexcept;
  // Returns the ledger's id of the call's native stack, with all frames up to the thread's first
  // one, also beyond the configured depth. Functions of cuwarden are left out, and no Python frames
  // are put in. Returns 0 if some frames cannot be found or may be missing, there are more than
  // 1,024, or the ledger is full. Walks the stack each time, as nothing is cached.
  StackId whole_stack(const Caller&) noexcept;
  // Fills `into` with code addresses of the calling thread's stack, innermost frame first. Returns
  // their number, and if the stack is complete. `frame` is __builtin_frame_address(0) of the
  // function to begin with, which must still be running. Functions of cuwarden are left out.
  // `own_frame`: frame address of a function of cuwarden; Captured::met_own_frame says if it was
  // met. Null: none is looked for.
  stacks::Captured frames_from(const void* frame, std::span<std::uint64_t> into,
                               const void* own_frame = nullptr) noexcept {
    return unwinder_.capture(frame, into, own_frame);
  }
  // True if the process's Python interpreter has ended, or has begun to end and frees its remaining
  // objects. False if no call of this function has found the interpreter running before.
  bool interpreter_has_ended() noexcept { return python_.interpreter_has_ended(); }
  // True if a Python interpreter that ran at an earlier call of this function, of
  // interpreter_has_ended() or of PythonStacks::read() does not run now. forget_interpreters_end()
  // does not change this.
  bool interpreter_is_gone() noexcept { return python_.interpreter_is_gone(); }
  // Makes interpreter_has_ended() return false, until a call of it finds the interpreter running
  // and a later one finds that it has ended. To be called when the program goes on after the end of
  // the interpreter that it embeds.
  void forget_interpreters_end() noexcept { python_.forget_interpreters_end(); }
  // Forgets cached stacks and unwind rules, because code was unloaded and other code may come to
  // its addresses. Also ends the ledger's rows of unloaded modules. To be called after each
  // dlclose.
  void modules_changed() noexcept;

 private:
  // Returns the group of a call whose stack Unwinder::recognise() does not know, by walking the
  // native stack. Makes the group if it is new. Returns 0 if the ledger is full. `Kind` and
  // `DeviceOrdinal` (no_device: the host) are those of the memory.
  GroupId group_of_unknown(const Caller&, Kind, DeviceOrdinal) noexcept;
  // Does the work of group_unguarded() for a thread that has a state in the Python interpreter, at
  // the address `python_state`. `native`: result of Unwinder::recognise(); 0 if the native stack is
  // not known.
  GroupId group_with_python(const Caller&, Kind, DeviceOrdinal, GroupId native,
                            std::uint64_t python_state) noexcept;
  // Returns the group that was made earlier for the calling thread's present Python frames on the
  // native stack with the name `native`, not 0. Returns 0 if there is none, and `native` if the
  // thread has no Python frames. `python_state`: address of the thread's state in the interpreter.
  // `generation`: as in KnownChains.
  GroupId known_with_python(GroupId native, std::uint64_t python_state,
                            std::uint32_t generation) noexcept;
  // Does the work of known_with_python() if the Python frames differ from the last ones on this
  // native stack. Returns `native` if there are no Python frames.
  GroupId find_with_python(GroupId native, std::uint64_t python_state,
                           std::uint32_t generation) noexcept;
  // Returns the group of a call by a thread that has a state in the Python interpreter, by walking
  // the stack. Makes the group if it is new. Returns 0 if the ledger is full. Puts the Python
  // frames into the stack if the thread is inside the interpreter. Parameters as for
  // group_with_python().
  GroupId group_of_unmet(const Caller&, Kind, DeviceOrdinal, GroupId native,
                         std::uint64_t python_state) noexcept;

  ledger::Writer& ledger_;
  const std::size_t stack_depth_;
  stacks::Unwinder unwinder_;
  PythonStacks python_;
};

}  // namespace cuwarden::tracking
