// Finds out what the calling thread's stack is, and if it has room for larger work.
//
// Larger work stays on the thread's stack if that has the room: a garbage collector that stops the
// thread by a signal looks at all memory from the stack pointer to the stack's upper end. A signal
// stack or a coroutine's may be a local array of that stack, though, with other frames below.
#pragma once

#include "runtime_hooks/tracking/call_sites.hpp"

namespace cuwarden::shim {

// The frames on the calling thread's stack, from the function that looks to the thread's first one.
struct PresentFrames {
  // True if all frames were found.
  bool whole = false;
  // True if one of them is a signal handler's.
  bool in_signal_handler = false;
  // True if one of them is the driver's.
  bool in_driver = false;
  // True if the outermost one is the frame with which the program or the thread began. False on a
  // coroutine's stack.
  bool from_the_beginning = false;
};
// Looks at the calling thread's frames. `frame` is __builtin_frame_address(0) of the function to
// begin with, which must still be running. All is false if there is no memory to do so.
PresentFrames present_frames(tracking::CallSites&, const void* frame) noexcept;
// Finds the code with which libc starts threads and coroutines, for present_frames(). To be called
// at the start of recording.
void note_beginnings_of_stacks() noexcept;

// Calls work(argument) with 1 MiB of stack: on the thread's own stack if so much is left there,
// else as call_on_own_stack(). Returns false if there is no memory for that; then `work` was not
// called.
bool call_with_room(tracking::CallSites&, void (*work)(void*), void* argument) noexcept;

}  // namespace cuwarden::shim
