// The walks of runtime_hooks/stacks, in a shared object of their own as in the shim: its frames are
// left out of stacks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuwarden::bench {

#define CUWARDEN_SHOWN [[gnu::visibility("default"), gnu::noinline]]

// What calling into the shared object costs.
CUWARDEN_SHOWN std::size_t walk_nothing(std::uint64_t* frames, std::size_t room);
// Each fills `frames` from the caller on, and returns how many there are.
CUWARDEN_SHOWN std::size_t walk_by_libgcc(std::uint64_t* frames, std::size_t room);
CUWARDEN_SHOWN std::size_t walk_by_rules(std::uint64_t* frames, std::size_t room);
// As the recorder does with a stack that it meets for the second time: also remembers what it read.
CUWARDEN_SHOWN std::size_t walk_and_remember(std::uint64_t* frames, std::size_t room);
// As the recorder does with any stack: walks only where it is not recognised. The number of frames
// is 0 where it was.
CUWARDEN_SHOWN std::size_t recognise_or_walk(std::uint64_t* frames, std::size_t room);

}  // namespace cuwarden::bench
