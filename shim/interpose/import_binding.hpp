// The shim's calls of libc reach libc's own functions. The loader binds an import to the definition
// that comes first in the process: a wrapper in the program, another preloaded library, or a
// sanitizer's interceptor. A hook runs before interceptors are ready, and inside of wrappers that
// are looking up the function behind them, so a call of one would crash or never end.
#pragma once

namespace cuwarden::shim {

// True if the shim's imports of libc lead to libc's own functions, and to no wrapper. They are
// bound so while the shim is relocated, before any of its code can be called. False if the loader's
// list of objects could not be read; then the imports are as the loader bound them.
bool imports_are_libcs_own();

}  // namespace cuwarden::shim
