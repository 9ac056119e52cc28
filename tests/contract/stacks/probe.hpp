// A shared object that stands in for the shim: it walks the stack of whoever calls it in all ways
// that it has, and compares. Its own frames are left out, as the shim's are.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct StacksSeen {
  std::uint64_t compared;
  std::uint64_t different;   // from libgcc's: never to happen
  std::uint64_t recognised;  // without a walk
  std::uint64_t deepest;
  std::uint64_t slow;  // libgcc had to walk them
  std::uint64_t foreign_code, no_description, malformed, unreadable, endless;
};

// Walks the caller's stack by rules and by libgcc, and asks whether it is known. Returns the number
// of frames, or -1 where any two differ.
int compare_stacks();
// The same, with room for this many frames.
int compare_stacks_up_to(std::size_t frames);
// By rules alone, for stacks that would make libgcc fault. The number of frames.
int walk_stack(std::uint64_t* frames, std::size_t room);

void probe_modules_changed();
// Whom the walk asks about code of no module; a FindDescription.
void probe_ask_host(const void* (*find)(void*, void*));
StacksSeen stacks_seen();
// Of the last difference: both stacks, line by line. Lives in static memory.
const char* last_difference();

}  // extern "C"
