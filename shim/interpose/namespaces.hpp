// Tells if the process holds a driver that the shim cannot see.
#pragma once

namespace cuwarden::shim {

// Notes that the program loads a library into a linker namespace of its own (dlmopen).
void note_dlmopen() noexcept;
// True once dlmopen was called. From then on a second libcuda may exist that the shim does not
// record.
bool dlmopen_was_called() noexcept;

// True if a libcuda is mapped in another linker namespace (dlmopen) than the shim's. Its calls are
// not recorded.
bool is_driver_out_of_sight() noexcept;

}  // namespace cuwarden::shim
