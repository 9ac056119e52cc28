// The only interposer of dlsym, dlvsym, dlopen, dlmopen and cuGetProcAddress: the real look-up
// answers first, and an answer that is a hooked entry point of libcuda is replaced by its hook.
#pragma once

namespace cuwarden::shim {

// Whether dlmopen was called: then a second libcuda may be out of our sight.
bool dlmopen_was_called();

}  // namespace cuwarden::shim
