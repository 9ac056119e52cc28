// Tells the CUDA driver's own data, as far as it lies close to the variables of its libraries.
#pragma once

#include <cstdint>
#include <vector>

#include "reporters/reachability/memory_areas.hpp"
#include "reporters/reachability/present_memory.hpp"

namespace cuwarden::reachability {

// The chunks of malloc to which the variables of the driver's libraries point, and those to which
// such chunks point. They hold what the driver has once, and not for each block, such as a list of
// the process's areas of memory, or the description of a memory pool. (Measured on an H200 with
// driver 580: 130 chunks, and 33,000 to which these point.)
//
// Farther away, a chunk may be the program's: the driver also keeps the argument of a callback.
// (Measured: from there on, pointers lead to 78 % of all chunks of a process with PyTorch.)
class DriverVariables {
 public:
  // Reads the variables. `areas`: all areas of the process's memory, by address. Throws
  // std::bad_alloc.
  DriverVariables(PresentMemory& memory, const std::vector<Area>& areas);

  // True if such a pointer leads to the start of the chunk's contents. `chunk`: the chunk's
  // address.
  bool lead_to(std::uint64_t chunk) const;

 private:
  // Appends the words of a range that may be pointers to chunks.
  void add_pointers(PresentMemory& memory, const std::vector<Area>& areas, Range range);

  std::vector<std::uint64_t> pointers_;  // sorted
};

}  // namespace cuwarden::reachability
