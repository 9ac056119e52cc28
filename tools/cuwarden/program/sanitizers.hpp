// Makes the shim (libcuwarden.so) work in programs that are built with a sanitizer. The shared
// runtime of AddressSanitizer (GCC's default; with Clang: -shared-libasan) ends a program at its
// start if another library is preloaded before the runtime.
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

// Returns the name of the sanitizer whose runtime the library is, such as "AddressSanitizer" for
// "libasan.so.8"; empty if it is none. `library`: file name or path.
std::string_view sanitizer_of(std::string_view library);

// True if the library is a sanitizer's runtime that ends the program at its start if another
// library is preloaded before the runtime. `library`: file name or path.
bool insists_on_being_first(std::string_view library);

// Returns a value for LD_PRELOAD: the user's value, with cuwarden's libraries added. `user_value`:
// the value that the user has set, or empty. `preloads`: cuwarden's libraries, separated by colons.
// They come before the user's libraries, but behind the sanitizers' runtimes with which
// `user_value` begins.
std::string preloaded_behind_sanitizers(std::string_view user_value, const std::string& preloads);

// Returns a value for ASAN_OPTIONS: the user's value, with verify_asan_link_order=0 added. With
// this option, AddressSanitizer's runtime accepts a library that is preloaded before the runtime.
// `user_value`: the value that the user has set, or empty; returned unchanged if it contains the
// option already.
std::string options_behind_preloads(std::string user_value);

}  // namespace cuwarden
