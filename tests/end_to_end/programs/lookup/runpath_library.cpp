// Opens a library that only its own RUNPATH leads to: the loader uses the RUNPATH of dlopen's
// caller.
#include <dlfcn.h>

extern "C" [[gnu::visibility("default")]] int open_private() {
  void* part = dlopen("libprivate_part.so", RTLD_NOW);
  if (part == nullptr) return -1;
  void* answer = dlsym(part, "private_answer");
  return answer == nullptr ? -2 : reinterpret_cast<int (*)()>(answer)();
}
