// The walks of runtime_hooks/stacks, in a shared object of their own as in the shim, whose frames
// are left out of stacks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuwarden::bench {

#define CUWARDEN_SHOWN [[gnu::visibility("default"), gnu::noinline]]

// Does nothing: measures a call into the shared object.
CUWARDEN_SHOWN std::size_t walk_nothing(std::uint64_t* frames, std::size_t room);
// Each of the walks fills `frames` from the caller on, and returns the number of frames.
CUWARDEN_SHOWN std::size_t walk_by_libgcc(std::uint64_t* frames, std::size_t room);
CUWARDEN_SHOWN std::size_t walk_by_rules(std::uint64_t* frames, std::size_t room);
// Walks and remembers the stack, as the recorder does when it meets a stack for the second time.
CUWARDEN_SHOWN std::size_t walk_and_remember(std::uint64_t* frames, std::size_t room);
// Walks the stack only if it is not recognised, as the recorder does with any stack. Returns 0 if
// it was recognised.
CUWARDEN_SHOWN std::size_t recognise_or_walk(std::uint64_t* frames, std::size_t room);

}  // namespace cuwarden::bench
