// Binds the shim's calls of libc to libc's own functions. The loader alone would bind a call to the
// definition that comes first in the process: a wrapper in the program, another preloaded library,
// or a sanitizer's interceptor. The shim's hooks run before interceptors are ready, and inside
// wrappers that are just looking up the function behind them. A call of one would crash or never
// end.
#pragma once

namespace cuwarden::shim {

// True if the shim's calls of libc reach libc's own functions, and no wrapper of another library.
// For this, the shim's global offset table is rewritten while the loader relocates the shim. False
// if the loader's list of objects could not be read then; the calls reach the functions that the
// loader chose.
bool imports_are_libcs_own();

}  // namespace cuwarden::shim
