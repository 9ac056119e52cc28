// Recognises reserves of libraries (memory that a library keeps for itself, such as buffers and
// caches) by the files of the libraries' code. library_reserves.def lists the libraries, and the
// calls by which a program gets the memory back.
#pragma once

#include <string_view>

#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden {

// A kind of reserve: memory that a library keeps for itself. A row of library_reserves.def. The
// texts are noun phrases for users, and live as long as the process.
struct LibraryReserve {
  // The memory in which a reserve lies: a device's (`device`), or page-locked memory of the host
  // (`host`).
  enum class Memory : unsigned char { device, host };
  // The use of a reserve. `own`: the library works with the memory itself. `handed_out`: the
  // library hands out parts of it to the program, such as the memory of tensors.
  enum class Use : unsigned char { own, handed_out };

  std::string_view library;  // name of the library, such as "NCCL"
  // Pattern (matches_file()) of the path of the file with the library's code.
  std::string_view file;
  Memory memory;           // memory in which the reserve lies
  Use use;                 // use that the library makes of the reserve
  std::string_view holds;  // content of the reserve, such as "buffers of communicators"
  // Calls by which a program gets unused memory of the reserve back; empty: there is none.
  std::string_view gives_back;
  std::string_view limited_by;  // settings and calls that limit the reserve; empty: there is none
};

// Returns the reserve (memory that a library keeps for itself) to which an allocation belongs; null
// if it belongs to none. `asker`: path of the module that asked for the memory: the innermost one
// on the call stack that is not is_between_cuda_and_asker(). The other parameters are the
// allocation's kind of memory, and its device; no_device for host memory. Imported memory and
// implicit memory belong to no reserve.
const LibraryReserve* reserve_of(std::string_view asker, Kind, DeviceOrdinal) noexcept;

// True if the module at this path only passes on requests for memory of other modules. Such are
// CUDA's own libraries, and the bindings by which CuPy calls CUDA.
bool is_between_cuda_and_asker(std::string_view module_path) noexcept;

}  // namespace cuwarden
