// Finds out what the calling thread's stack is, and if it has room for larger work.
//
// Larger work stays on the thread's stack if that has the room: a garbage collector that stops the
// thread by a signal looks at all memory from the stack pointer to the stack's upper end. A signal
// stack or a coroutine's may be a local array of that stack, though, with other frames below.
#pragma once

#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/tracking/call_sites.hpp"

namespace cuwarden::shim {

// Facts about the call frames on the calling thread's stack, from the frame with which the walk
// began (`frame` of present_frames()) to the thread's outermost frame.
struct PresentFrames {
  // True if all frames on the calling thread's stack were found, down to the outermost one.
  bool whole = false;
  // True if a frame on the calling thread's stack is a signal handler's.
  bool in_signal_handler = false;
  // True if a frame on the calling thread's stack is the CUDA driver's. False proves nothing unless
  // `whole` is true; that holds for in_signal_handler, too.
  bool in_driver = false;
  // True if the frame of the shim that present_frames() got as `own_frame` is on the calling
  // thread's stack. False if `own_frame` was null.
  bool met_own_frame = false;
  // True if the outermost frame on the calling thread's stack is the one with which the process or
  // the thread began. False on a coroutine's stack, which begins at another frame.
  bool from_the_beginning = false;
};
// Returns facts about the frames on the calling thread's stack. `CallSites`: the object that walks
// stacks. `frame`: __builtin_frame_address(0) of a function that has not returned; the walk begins
// with its frame. `own_frame`: address of a frame of the shim's to look for; null: none. All
// members are false if there is no memory for the walk.
PresentFrames present_frames(tracking::CallSites&, const void* frame,
                             const void* own_frame = nullptr) noexcept;
// True if a function of the shim was certainly left by a jump (longjmp): all frames on the calling
// thread's own stack were found, and the function's frame is not among them. `CallSites`: the
// object that walks stacks. `frame`: __builtin_frame_address(0) of a function that has not
// returned; the walk begins with its frame. `own_frame`: __builtin_frame_address(0) of the function
// that may have been left. Always false in a thread that a seccomp filter confines.
bool has_left(tracking::CallSites&, const void* frame, const void* own_frame) noexcept;
// Finds and stores the addresses of libc's code with which threads and coroutines begin. By them,
// present_frames() recognises the outermost frame of a stack. To be called when recording starts.
void note_beginnings_of_stacks() noexcept;

// Calls `work` with at least 1 MiB of stack, and returns true. Calls on a separate stack if less is
// left, or if the thread runs on a coroutine's or a signal handler's stack. Does so, too, if
// neither can be ruled out, as in a thread that a seccomp filter confines. `CallSites`: walks the
// thread's frames before the call, to find out which kind of stack this is. Returns false if there
// is no memory for a separate stack; then `work` was not called.
bool call_with_room(tracking::CallSites&, FunctionRef<void()> work) noexcept;

}  // namespace cuwarden::shim
