// Records an allocation and its free with the caller's stack; the driver under the recording does
// nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuwarden::bench {

// Records one allocation and its free, with the caller's call stack of up to `room` frames (10, 30
// or 60). Returns `room`. The first parameter is not used.
[[gnu::visibility("default"), gnu::noinline]] std::size_t record_pair(std::uint64_t*,
                                                                      std::size_t room);

}  // namespace cuwarden::bench
