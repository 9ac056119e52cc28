// Whether the process holds a driver that the shim cannot see.
#pragma once

namespace cuwarden::shim {

// A libcuda in a namespace of its own (dlmopen) is mapped, but is not among the objects of ours.
bool is_driver_out_of_sight() noexcept;

}  // namespace cuwarden::shim
