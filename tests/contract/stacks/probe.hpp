// A shared object that stands in for the shim: it walks the stack of whoever calls it in all ways
// that it has, and compares. Its own frames are left out, as the shim's are.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct StacksSeen {
  uint64_t compared;
  uint64_t different;   // from libgcc's: never to happen
  uint64_t recognised;  // without a walk
  uint64_t deepest;
  uint64_t not_expressible;
  uint64_t foreign_code, no_description, malformed, unreadable, endless;
};

// Walks the caller's stack by rules and by libgcc, and asks whether it is known. Returns the number
// of frames, or -1 where any two differ. One that ends early at a frame that a rule cannot express,
// and is counted as such, does not.
int compare_stacks(void);
// The same, with room for this many frames.
int compare_stacks_up_to(size_t frames);
// By rules alone, for stacks that would make libgcc fault. The number of frames.
int walk_stack(uint64_t* frames, size_t room);

void probe_modules_changed(void);
struct StacksSeen stacks_seen(void);
// Of the last difference: both stacks, line by line. Lives in static memory.
const char* last_difference(void);

#ifdef __cplusplus
}  // extern "C"
#endif
