// The areas of a process's memory, in some of which the program may keep pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden::reachability {

// Bytes of a page of host memory.
inline constexpr std::uint64_t bytes_of_page = 4096;

// A range of addresses.
struct Range {
  // First address, and the one behind the last.
  std::uint64_t start = 0, end = 0;
  // Number of addresses in the range.
  std::uint64_t bytes() const { return end - start; }
};

// The use of an area of memory, as far as it matters to a search for the program's pointers. The
// search leaves out areas of `own` and `driver_library`.
enum class AreaUse : std::uint8_t {
  // Device files other than those of `anonymous`, and memory of the kernel such as the vDSO. Only
  // managed memory (cudaMallocManaged) in such areas is searched.
  device_or_kernel,
  driver_library,  // code and data of the CUDA driver's own libraries
  own,             // code and data of cuwarden
  library,         // code and data of another file, outside /dev
  heap,            // the main heap of libc's malloc ("[heap]")
  stack,           // stack of the process's first thread ("[stack]")
  // Memory without a file, such as the stacks of other threads. Also mapped files whose paths begin
  // with /dev/zero, /dev/shm/ or /dev/hugepages.
  anonymous,
};

// An area of a process's address space: a line of /proc/PID/maps.
struct Area {
  Range range;                       // addresses of the area
  AreaUse use = AreaUse::anonymous;  // use of the area
  bool is_readable = false;          // true if the process may read the area
  bool is_writable = false;          // true if the process may write the area
  // True if the area right below this one cannot be accessed, as below a thread's stack.
  bool is_guarded = false;
  // True if the mapping is shared, so that other processes or the driver may write the pages.
  // Page-locked memory that the driver has allocated is mapped in this way.
  bool is_shared = false;
};

// Function that reads words of a process's memory from the address `start` on. Returns the number
// of words that it has read into the beginning of `words`.
using ReadWords = FunctionRef<std::size_t(std::uint64_t start, std::span<std::uint64_t> words)>;

// Returns the areas of a process's memory, sorted by address; empty if the list cannot be read.
// `pid`: the process; 0: this one. `read`: reads the memory of that process. Throws std::bad_alloc.
std::vector<Area> memory_areas(int pid, ReadWords read);

// Returns the area that holds the address; null if there is none. `areas`: sorted by address. The
// result points into `areas`.
const Area* area_at(const std::vector<Area>& areas, std::uint64_t address);

}  // namespace cuwarden::reachability
