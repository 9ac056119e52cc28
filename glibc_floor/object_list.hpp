#pragma once

#include <dlfcn.h>

namespace cuwarden {

// Does what glibc 2.35's _dl_find_object does, by the list of loaded objects: fills `result` with
// the object that `address` lies in and its unwind table. Returns 0, or -1 where no object has one.
int find_in_object_list(void* address, dl_find_object* result) noexcept;

}  // namespace cuwarden
