// The areas of a process's memory in which the program may keep pointers, and the stacks of its
// threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden::reachability {

// Bytes of a page of memory.
inline constexpr std::uint64_t bytes_of_page = 4096;

// Addresses from `start` up to, without, `end`.
struct Range {
  std::uint64_t start = 0, end = 0;
  // Number of addresses in the range.
  std::uint64_t bytes() const { return end - start; }
};

// Use of an area of memory, as far as it matters to a search for pointers.
enum class AreaUse : std::uint8_t {
  not_looked_at,   // not readable, a device's registers, or the kernel's
  driver_library,  // code and data of the CUDA driver's own libraries
  own,             // code and data of cuwarden
  library,         // code and data of another file
  heap,            // the main heap of libc's malloc ("[heap]")
  stack,           // the first thread's stack ("[stack]")
  anonymous,       // any other memory
};

// An area of a process's address space: a line of /proc/PID/maps.
struct Area {
  Range range;                       // addresses of the area
  AreaUse use = AreaUse::anonymous;  // what the area is used for
  bool is_readable = false;          // true if the process may read it
  bool is_writable = false;          // true if the process may write it
  bool is_guarded = false;           // true if the area right below it cannot be accessed
  // True if other processes, or the driver, may share the area's pages. Such are the pages of
  // page-locked memory that the driver has allocated.
  bool is_shared = false;
};

// Reads words of a process's memory; returns how many were read, from the first.
using ReadWords = FunctionRef<std::size_t(std::uint64_t start, std::span<std::uint64_t> words)>;

// Returns the areas of a process, by address. `pid`: 0 stands for this process. `read`: reads the
// process's memory. The list is empty if it cannot be read. Throws std::bad_alloc.
std::vector<Area> memory_areas(int pid, ReadWords read);

// Returns the area that holds the address; null if there is none. `areas`: sorted by address.
const Area* area_at(const std::vector<Area>& areas, std::uint64_t address);

// A thread of a process, in a moment of waiting.
struct ThreadState {
  int id = 0;  // the kernel's id of the thread
  // The thread's stack pointer; 0: unknown, since the thread was running.
  std::uint64_t stack_pointer = 0;
  // Arguments of the system call in which the thread waits. Other registers are not known.
  std::vector<std::uint64_t> arguments;
  bool is_drivers = false;   // true if the CUDA driver has started the thread, by its name
  bool is_caller = false;    // true for the thread that searches
  std::uint64_t ran_ns = 0;  // time for which the thread has run so far; 0: unknown
};

// Returns the threads of a process, but the calling thread. `pid`: 0 stands for this process. Sets
// `is_whole` to false if the list could not be read. Throws std::bad_alloc.
std::vector<ThreadState> thread_states(int pid, bool& is_whole);
// True if no thread of the program has certainly run between two lists of a process's threads.
bool have_rested(const std::vector<ThreadState>& before, const std::vector<ThreadState>& after);

}  // namespace cuwarden::reachability
