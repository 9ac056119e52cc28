// The texts of cuwarden's Python modules (tools/python), as a part of the shim.
#pragma once

#include <array>

namespace cuwarden::shim {

// A Python module of cuwarden's. All texts end with a null byte.
struct PythonModule {
  const char* name;     // name by which programs import the module
  const char* kept_as;  // name of the attribute of `sys` that holds the module
  const char* text;     // Python source of the module
};

// cuwarden's Python modules. Each comes after the modules that it imports. The file that defines
// this constant is generated (embed_text.py).
extern const std::array<PythonModule, 2> python_modules;

}  // namespace cuwarden::shim
