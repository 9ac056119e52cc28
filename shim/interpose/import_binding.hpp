// The shim's calls of libc reach libc's own functions. The loader binds an import to the definition
// that comes first in the process: a wrapper in the program, another preloaded library, or a
// sanitizer's interceptor. A hook runs before interceptors are ready, and inside of wrappers that
// are looking up the function behind them, so a call of one would crash or never end.
#pragma once

namespace cuwarden::shim {

// True once the shim's imports are libc's own functions: from the relocation of the shim on, before
// any of its code can be called. False where the loader's list of objects could not be read; the
// imports then are as the loader bound them.
bool imports_are_libcs_own();

}  // namespace cuwarden::shim
