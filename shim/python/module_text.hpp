// The texts of cuwarden's Python modules (tools/python), as a part of the shim.
#pragma once

#include <array>

namespace cuwarden::shim {

// A Python module. All texts end with a null byte.
struct PythonModule {
  const char* name;     // name by which programs import it
  const char* kept_as;  // attribute of the module sys that keeps it
  const char* text;     // its source
};

// The modules, those first that others import. Their file is generated.
extern const std::array<PythonModule, 2> python_modules;

}  // namespace cuwarden::shim
