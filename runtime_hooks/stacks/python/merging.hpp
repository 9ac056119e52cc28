// Puts a thread's Python frames into its native stack, where the interpreter runs them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime_hooks/core/python_symbols.hpp"
#include "runtime_hooks/stacks/python/frame_chain.hpp"

namespace cuwarden::stacks::python {

// A native stack, innermost frame first: for each frame an address inside its call instruction, and
// the value of the stack pointer (rsp) in it.
struct NativeStack {
  std::span<const std::uint64_t> frames, stack_pointers;
  // Captured::outermost_sp of the walk: the upper end of the outermost frame's part of the stack,
  // if the walk went on to that frame's caller. 0: unknown.
  std::uint64_t outermost_sp = 0;
  bool truncated = false;  // true if outer frames are missing
};

// The result of merge(): the number of frames, and if outer ones are missing.
struct Merged {
  std::size_t count = 0;
  bool truncated = false;
};

// Merges a native stack with the Python frames of the same thread, both innermost first, into
// `frames`. Each group of Python frames replaces the native frame of the C function that runs the
// group: the one in whose part of the stack Group::inside lies. If Group::inside is 0, it is the
// next native frame of _PyEval_EvalFrameDefault. Groups keep their order. If no native frame is
// found for a group, this group and all after it follow the native frames. If `frames` has no room,
// outer frames are left out.
//
// Native frames of the interpreter itself say nothing more, and are left out if its file has no
// other code (PythonSymbols::has_interpreter_alone).
//
// `python`: the values that are written to `frames` for the chain's Python frames, in the chain's
// order.
Merged merge(const NativeStack& native, const FrameChain& chain,
             std::span<const std::uint64_t> python, const PythonSymbols& symbols,
             std::span<std::uint64_t> frames) noexcept;

}  // namespace cuwarden::stacks::python
