// glibc 2.35's way to a frame's unwind table, which the static unwinder asks for when an exception
// is thrown. The shim has one of its own that needs no lock.
#include "glibc_floor/object_list.hpp"

extern "C" [[gnu::visibility("hidden")]] int _dl_find_object(void* address,
                                                             dl_find_object* result) noexcept {
  return cuwarden::find_in_object_list(address, result);
}
