// Recognises the CUDA driver's own data that lies close to the variables of its libraries.
#pragma once

#include <cstdint>
#include <vector>

#include "reporters/reachability/memory_areas.hpp"
#include "reporters/reachability/present_memory.hpp"

namespace cuwarden::reachability {

// Finds chunks of malloc that belong to the CUDA driver. They are those to which variables of the
// driver's libraries point, and those to which such chunks point. They hold data that the driver
// has once, and not for each block, such as the description of a memory pool. (Measured on an H200
// with driver 580: 130 chunks, and 33,000 to which these point.)
//
// Chunks at a greater distance do not count, since they may be the program's: the driver also keeps
// the argument of a callback. (Measured: from there on, pointers lead to 78 % of all chunks of a
// process with PyTorch.)
class DriverVariables {
 public:
  // Reads the variables of the driver's libraries, and the chunks to which they point. `memory`:
  // the process's memory, only used here. `areas`: all areas of it, sorted by address. Throws
  // std::bad_alloc.
  DriverVariables(PresentMemory& memory, const std::vector<Area>& areas);

  // True if a variable of the driver's libraries, or a chunk to which one points, has a pointer to
  // the contents of the chunk. `chunk`: address of the chunk's header.
  bool lead_to(std::uint64_t chunk) const;

 private:
  // Appends to `pointers_` those words of a range of memory that may be addresses of chunks'
  // contents (the bytes behind a chunk's header). `areas`: all areas of the process's memory, by
  // address. A word counts only if it points into one in which malloc may keep chunks.
  void add_pointers(PresentMemory& memory, const std::vector<Area>& areas, Range range);

  // Addresses of the contents of the driver's chunks of malloc: the bytes behind each chunk's
  // header. In ascending order.
  std::vector<std::uint64_t> pointers_;
};

}  // namespace cuwarden::reachability
