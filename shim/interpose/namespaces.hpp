// Tells if the process has loaded a libcuda whose calls the shim cannot hook, because it is in
// another linker namespace (dlmopen).
#pragma once

namespace cuwarden::shim {

// Stores, for dlmopen_was_called(), that the program calls dlmopen, which loads a library into
// another linker namespace. To be called by the hook of dlmopen.
void note_dlmopen() noexcept;
// True once the program has called dlmopen. From then on another linker namespace may hold a second
// libcuda, whose calls the shim does not record.
bool dlmopen_was_called() noexcept;

// True if a libcuda is mapped in another linker namespace (dlmopen) than the shim's: calls of that
// libcuda are not recorded. Reads /proc/self/maps. False also if that file cannot be read, or
// without memory for its text.
bool is_driver_out_of_sight() noexcept;

}  // namespace cuwarden::shim
