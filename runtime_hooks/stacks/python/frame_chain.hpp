// The Python frames of the calling thread, as the interpreter links them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuwarden::stacks::python {

// One Python frame: a call of a Python function, and the instruction that it has reached.
struct PythonFrame {
  // Address of the code object of the function.
  std::uint64_t code;
  // The instruction that the frame has reached, as the interpreter keeps it: from 3.11 on an
  // address, in 3.10 a number of instructions, in 3.9 a number of bytes. Before the first
  // instruction of 3.9 and 3.10, it is UINT32_MAX. Interpreter::instruction_of() converts it.
  std::uint64_t position;
  // Value that tells the code object from earlier and later ones at the same address: stamp_of().
  std::uint64_t stamp;
  constexpr bool operator==(const PythonFrame&) const = default;
};

// The Python frames of a thread, innermost first. They are divided into groups: the frames of one
// group are run by one C function, without another C function between them.
struct FrameChain {
  static constexpr std::size_t most_frames = 256;

  // A group: successive frames that one C function runs.
  struct Group {
    std::uint32_t end;  // index in FrameChain::frames after the group's last frame
    // An address in the stack frame of the C function that runs the group; 0: unknown.
    std::uint64_t inside;
  };

  // `frames` has the Python frames, and `group` their groups. Only the first `count` frames and the
  // first `groups` groups are valid; the other elements have no values.
  PythonFrame frames[most_frames];
  Group group[most_frames];
  std::uint32_t count, groups;
  bool truncated;  // true if outer frames are missing, because the chain has no room for them

  // Adds a frame. Returns false, with the chain marked as truncated, if there is no room.
  bool add(const PythonFrame& frame) noexcept {
    if (count == most_frames) {
      truncated = true;
      return false;
    }
    frames[count++] = frame;
    return true;
  }
  // Ends the group of the frames that were added last. Does nothing if no frame was added since the
  // last group. `inside`: Group::inside.
  void end_group(std::uint64_t inside) noexcept {
    if (count > (groups == 0 ? 0 : group[groups - 1].end)) group[groups++] = {count, inside};
  }
};

}  // namespace cuwarden::stacks::python
