// A shared object that stands in for the shim. It walks its caller's stack in all available ways
// and compares the results. Its own frames are left out, as the shim's are.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Counts of stacks that were walked or compared since the process began.
struct StacksSeen {
  // Stacks that were walked in all ways, and compared.
  uint64_t compared;
  // Stacks whose walks differ from that of libgcc; must stay 0.
  uint64_t different;
  // Stacks that were recognised without a walk.
  uint64_t recognised;
  // Most frames of a stack so far.
  uint64_t deepest;
  // Walks by rules that ended at a frame whose unwind table is too complex for cuwarden's unwind
  // rules.
  uint64_t not_expressible;
  // Walks by rules that ended before the thread's first frame, by the reason: code of no module;
  // code without an unwind table; an unwind table that is malformed; a frame that cannot be read; a
  // stack whose frames do not end.
  uint64_t foreign_code, no_description, malformed, unreadable, endless;
};

// Finds the caller's stack in three ways: by cuwarden's unwind rules, by libgcc's unwinder, and by
// recognising it from an earlier walk. Returns the number of frames, or -1 if any two results
// differ. A walk by rules that ends early at a frame whose unwind table is too complex is no
// difference; it is counted in not_expressible.
int compare_stacks(void);
// Walks the caller's stack by cuwarden's unwind rules and by libgcc's unwinder, up to `frames`
// frames (at most 512). Returns the number of frames, or -1 if the results differ.
int compare_stacks_up_to(size_t frames);
// Walks the caller's stack by cuwarden's unwind rules only, for stacks in which libgcc's unwinder
// would crash. Writes the code addresses to `frames`, innermost first, `room` of them at most.
// Returns their number.
int walk_stack(uint64_t* frames, size_t room);

// Forgets all stacks and unwind rules that are kept from earlier walks, because code was loaded or
// unloaded.
void probe_modules_changed(void);
// Returns the counts of all stacks that the functions above have walked or compared since the
// process began.
struct StacksSeen stacks_seen(void);
// Returns the two stacks of the last difference as text, line by line; empty if there was none. The
// text lies in static memory.
const char* last_difference(void);

#ifdef __cplusplus
}  // extern "C"
#endif
