// Keeps the shim loadable on glibc 2.28, beside glibc_floor/: the part that needs the shim's view
// of the loaded objects.
#include <dlfcn.h>

#include <atomic>

#include "glibc_floor/object_list.hpp"
#include "shim/support/loaded_objects.hpp"

extern "C" {

// A function of glibc 2.35 by which the unwinder finds a frame's unwind table. It is forwarded if
// libc has it, which takes no lock. Otherwise the loader's list is walked, as older unwinders
// do.
[[gnu::visibility("hidden")]] int _dl_find_object(void* address, dl_find_object* result) noexcept {
  using Find = int (*)(void*, dl_find_object*);
  static constinit std::atomic<Find> real{nullptr};
  static constinit std::atomic<bool> looked{false};
  if (!looked.load(std::memory_order_acquire)) {
    cuwarden::shim::any_loaded_object([](const cuwarden::shim::LoadedObject& object) {
      if (object.soname() != "libc.so.6") return false;
      real.store(reinterpret_cast<Find>(object.find("_dl_find_object")));
      return true;
    });
    looked.store(true, std::memory_order_release);
  }
  if (const Find find = real.load(std::memory_order_relaxed)) return find(address, result);
  return cuwarden::find_in_object_list(address, result);
}

}  // extern "C"
