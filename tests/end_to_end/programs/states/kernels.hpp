// Code of kernels that make the driver take memory when they are launched.
#pragma once

#include <string>

#include "tests/kernels_in_ptx.hpp"

// PTX text with a variable of 4 MiB and the kernel `short`, which needs no memory.
inline constexpr char code_with_table[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .b8 table[4194304];
.visible .entry _Z5shortv() { ret; }
)";

// Returns PTX text with two kernels: `short`, which needs no memory, and `list`, which calls
// malloc(). `more`: PTX text of further kernels; may be empty. The kernels' names are mangled as
// nvcc does.
inline std::string code_with(const char* more) {
  return cuwarden::kernels::head + ".visible .entry _Z5shortv() { ret; }\n" +
         cuwarden::kernels::text_with_malloc("_Z4listv()") + more;
}
