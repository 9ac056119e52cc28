// A shared object that stands in for the shim. It walks its caller's stack in all available ways
// and compares the results. Its own frames are left out, as the shim's are.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Counts since the process began.
struct StacksSeen {
  uint64_t compared;
  uint64_t different;   // Stacks that differ from libgcc's; must stay 0.
  uint64_t recognised;  // Stacks that were recognised without a walk.
  uint64_t deepest;
  uint64_t not_expressible;
  uint64_t foreign_code, no_description, malformed, unreadable, endless;
};

// Walks the caller's stack by rules and by libgcc, and asks if it is known. Returns the number of
// frames, or -1 if any two results differ. A stack that ends early at a frame that a rule cannot
// express, and is counted as such, is no difference.
int compare_stacks(void);
// Compares as compare_stacks() does, with room for this many frames.
int compare_stacks_up_to(size_t frames);
// Walks the stack by rules only, for stacks that would make libgcc fault. Returns the number of
// frames.
int walk_stack(uint64_t* frames, size_t room);

void probe_modules_changed(void);
struct StacksSeen stacks_seen(void);
// Returns both stacks of the last difference as text, line by line. The text lies in static memory.
const char* last_difference(void);

#ifdef __cplusplus
}  // extern "C"
#endif
