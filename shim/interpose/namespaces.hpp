// Tells if the process holds a driver that the shim cannot see.
#pragma once

namespace cuwarden::shim {

// Notes that the program loads a library into a namespace of its own.
void note_dlmopen() noexcept;
// True once dlmopen was called. Then a second libcuda may be out of our sight.
bool dlmopen_was_called() noexcept;

// A libcuda in a namespace of its own (dlmopen) is mapped, but is not among the objects of ours.
bool is_driver_out_of_sight() noexcept;

}  // namespace cuwarden::shim
