// Programs that are built with a sanitizer. The shared runtime of AddressSanitizer (GCC's default;
// with Clang: -shared-libasan) ends a program at its start if another library is preloaded before
// it.
//
// cuwarden sets the runtime's option verify_asan_link_order=0, which also reaches programs that a
// script starts. The order that it permits is harmless: the shim defines no function that the
// runtime must be the first to define. Preloading the runtime before the shim would also start
// these programs. But the runtime would then be in every child process, would report leaks of
// shells and interpreters, and would change their exit status.
#pragma once

#include <string>
#include <string_view>

namespace cuwarden {

// Returns the sanitizer's name, such as "AddressSanitizer" for "libasan.so.8"; empty if the library
// is no sanitizer's runtime.
std::string_view sanitizer_of(std::string_view library);

// Returns true if the runtime refuses to start behind a preloaded library.
bool insists_on_being_first(std::string_view library);

// Returns a value for LD_PRELOAD: `preloads` before the user's libraries, but behind sanitizers'
// runtimes with which the user's value begins.
std::string preloaded_behind_sanitizers(std::string_view users, const std::string& preloads);

// Returns the value of ASAN_OPTIONS with which the runtime accepts the shim before it. A value of
// verify_asan_link_order that the user has set stays.
std::string options_behind_preloads(std::string users);

}  // namespace cuwarden
