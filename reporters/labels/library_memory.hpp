// Tells leaks from memory that libraries and frameworks keep for themselves, by the module that
// asked for the memory.
#pragma once

#include <cstdint>
#include <string>

#include "reporters/model/indexed_report.hpp"

namespace cuwarden {

// The use of a leak group's memory by the library that has asked for it, such as handing out blocks
// of it.
enum class LibraryUse : std::uint8_t {
  // No such use is known: the program's own code asked for the memory, or the group may be a leak
  // of the library.
  none,
  // The library took the memory for itself, and goes on using it: a few blocks that neither grow
  // nor are lost, and that no named step (such as a test) has made.
  workspace,
  // A framework took the memory to hand out blocks of it.
  cache,
  // As `cache`, and the framework's figures say that no block is handed out at present.
  idle_cache,
};

// True if a library or a framework keeps the memory for itself, with no part handed out: a
// workspace or an idle cache.
constexpr bool is_kept_by_library(LibraryUse use) {
  return use == LibraryUse::workspace || use == LibraryUse::idle_cache;
}

// The library that asked for the memory of a leak group, and the use that it makes of the memory.
struct LibraryMemory {
  LibraryUse use = LibraryUse::none;
  // Name of the library, printable, such as "cuBLAS"; empty if `use` is LibraryUse::none.
  std::string library;
};

// Returns the library that asked for the group's memory, and its use of the memory. The library is
// the module of the innermost frame that does more than pass requests on to CUDA
// (is_between_cuda_and_asker()).
LibraryMemory library_memory(const IndexedReport&, const model::LeakGroup&);

// Returns the library that asked for the group's memory, and its use of the memory if the group had
// the figures of a workspace. It depends only on the group's stack, kind and device.
LibraryMemory memory_by_asker(const IndexedReport&, const model::LeakGroup&);

}  // namespace cuwarden
