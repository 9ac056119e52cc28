// Code of kernels that make the driver take memory when they are launched.
#pragma once

#include <string>

#include "tests/kernels_in_ptx.hpp"

// PTX text with a variable of 4 MiB and the kernel `short`, which needs no memory.
inline const std::string code_with_table = cuwarden::kernels::head +
                                           ".visible .global .align 4 .b8 table[4194304];\n" +
                                           cuwarden::kernels::text_of_idle("_Z5shortv");

// Returns PTX text with two kernels: `short`, which needs no memory, and `list`, which calls
// malloc(). `more`: PTX text of further kernels; may be empty. The kernels' names are mangled as
// nvcc does.
inline std::string code_with(const char* more) {
  return cuwarden::kernels::head + cuwarden::kernels::text_of_idle("_Z5shortv") +
         cuwarden::kernels::text_with_malloc("_Z4listv()") + more;
}
