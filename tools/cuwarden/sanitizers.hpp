// Programs that are built with a sanitizer. The shared runtime of AddressSanitizer (GCC's way; with
// Clang: -shared-libasan) ends a program at its start where another library is preloaded before it.
//
// To preload the runtime itself would start these programs, but would also put it into every child
// that they run: there it finds leaks of shells and interpreters, and changes their exit status.
// The runtime's option verify_asan_link_order=0 has no such effect, and reaches programs that a
// script starts. The order that it permits is harmless: the shim defines no function that the
// runtime must be the first to define.
#pragma once

#include <string>
#include <string_view>

namespace cuwarden {

// "AddressSanitizer" for "libasan.so.8"; empty where the library is no sanitizer's runtime.
std::string_view sanitizer_of(std::string_view library);

// True if the runtime refuses to start behind a preloaded library.
bool insists_on_being_first(std::string_view library);

// A value for LD_PRELOAD: `preloads` in front of the user's own, but behind sanitizers' runtimes
// that the user's value begins with.
std::string preloaded_behind_sanitizers(std::string_view users, const std::string& preloads);

// A value for ASAN_OPTIONS with which the runtime may lie behind the shim. A user who has set that
// option is obeyed.
std::string options_behind_preloads(std::string users);

}  // namespace cuwarden
