// One allocation and its free, recorded with the caller's stack, over a driver that does nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuwarden::bench {

// Records `room` frames; for one of 10, 30 and 60.
[[gnu::visibility("default"), gnu::noinline]] std::size_t record_pair(std::uint64_t*,
                                                                      std::size_t room);

}  // namespace cuwarden::bench
