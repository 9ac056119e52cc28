#pragma once

#include <dlfcn.h>

namespace cuwarden {

// Replaces _dl_find_object, which the unwinder of C++ exceptions calls, and which glibc has only
// since 2.35. Finds the loaded object (program or library) that contains `address`, with
// dl_iterate_phdr. Fills `result` with the bounds of the object's mapping and its unwind table
// (.eh_frame_hdr); all other members become 0. Returns 0. Returns -1, without changing `result`, if
// no object contains the address or if that object has no unwind table.
int find_in_object_list(void* address, dl_find_object* result) noexcept;

}  // namespace cuwarden
