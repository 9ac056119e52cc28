// A frame of a call stack with its names.
#pragma once

#include <cstdint>
#include <string_view>

namespace cuwarden {

// Value of NamedFrame::library for code of CUDA and of cuwarden.
inline constexpr std::string_view cuda_library = "CUDA";
// Value of NamedFrame::library for code of Python's interpreter and its standard library.
inline constexpr std::string_view interpreter_library = "Python";
// Value of NamedFrame::library for code of glibc, and of the libraries of compilers.
inline constexpr std::string_view system_libraries = "system libraries";

// A frame of a call stack, with the names that are known. The texts are not owned.
struct NamedFrame {
  // Number that the caller gave to the frame's module; 0: the frame lies in no known module.
  std::uint32_t module = 0;
  // path: path of the module's file. function: demangled name of the function. Empty: unknown.
  std::string_view path{}, function{};
  std::string_view file{};  // path of the function's source file; empty: unknown
  std::uint64_t line = 0;   // line of the code in the source file; 0: unknown
  // Address of the code minus the module's load address; if `module` is 0, the address itself.
  // Without meaning for a Python function.
  std::uint64_t offset = 0;
  bool is_python = false;  // true for a Python function, which lies in no module
  bool inlined = false;    // true if the function is inlined into the next outer frame
  // Name of the library to which the code belongs (KnownLibraries); empty: the program's own.
  std::string_view library{};
};

}  // namespace cuwarden
