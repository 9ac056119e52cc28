// The ways to walk stacks of runtime_hooks/stacks. As in the shim, they are in a shared object
// whose own frames are left out of stacks.
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
// Walks the stack by cuwarden's own unwind rules and puts it into the cache of known stacks, as the
// recorder does with a stack that occurs for the second time. Fills `frames` with code addresses
// from the caller on, `room` of them at most, and returns their number.
CUWARDEN_SHOWN std::size_t walk_and_remember(std::uint64_t* frames, std::size_t room);
// Looks the stack up in the cache of known stacks, and walks it by cuwarden's own unwind rules only
// if it is not found, as the recorder does. Fills `frames` with code addresses from the caller on,
// `room` of them at most, and returns their number. Returns 0 if the stack was found in the cache.
CUWARDEN_SHOWN std::size_t recognise_or_walk(std::uint64_t* frames, std::size_t room);

}  // namespace cuwarden::bench
