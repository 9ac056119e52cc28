// The walks of runtime_hooks/stacks, in a shared object of their own as in the shim, whose frames
// are left out of stacks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuwarden::bench {

// Attributes of the walks: functions that the shared object exports, and that are never inlined.
#define CUWARDEN_SHOWN [[gnu::visibility("default"), gnu::noinline]]

// Does nothing and returns 0: measures a call into the shared object. The parameters are not used.
CUWARDEN_SHOWN std::size_t walk_nothing(std::uint64_t* frames, std::size_t room);
// Walks the stack by libgcc's unwinder. Fills `frames` with code addresses from the caller on,
// `room` of them at most, and returns their number.
CUWARDEN_SHOWN std::size_t walk_by_libgcc(std::uint64_t* frames, std::size_t room);
// Walks the stack by cuwarden's own unwind rules. Fills `frames` with code addresses from the
// caller on, `room` of them at most, and returns their number.
CUWARDEN_SHOWN std::size_t walk_by_rules(std::uint64_t* frames, std::size_t room);
// Walks the stack by rules and remembers it, as the recorder does when it meets a stack for the
// second time. Fills `frames` with code addresses from the caller on, `room` of them at most, and
// returns their number.
CUWARDEN_SHOWN std::size_t walk_and_remember(std::uint64_t* frames, std::size_t room);
// Walks the stack by rules only if it is not recognised, as the recorder does with any stack. Fills
// `frames` with code addresses from the caller on, `room` of them at most, and returns their
// number. Returns 0 if the stack was recognised.
CUWARDEN_SHOWN std::size_t recognise_or_walk(std::uint64_t* frames, std::size_t room);

}  // namespace cuwarden::bench
