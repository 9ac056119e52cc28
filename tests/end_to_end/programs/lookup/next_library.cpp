// Asks for the next definition of a name. The answer depends on who asks: the definition in the
// library that this one depends on (next_definition.cpp), not this one's own.
#include <dlfcn.h>

#define EXPORTED extern "C" [[gnu::visibility("default")]] int

// Defined beside the other one, so that its library is among this one's dependencies.
extern "C" int needed_by_the_first();

EXPORTED contested_name() { return 1; }

namespace {
int call(void* found) { return found == nullptr ? -1 : reinterpret_cast<int (*)()>(found)(); }
}  // namespace

EXPORTED next_definition() {
  if (needed_by_the_first() != 0) return -2;
  return call(dlsym(RTLD_NEXT, "contested_name"));
}
EXPORTED next_versioned_definition() {
  return call(dlvsym(RTLD_NEXT, "contested_name", "CONTESTED_1"));
}
EXPORTED default_definition() {
  // Opened RTLD_LOCAL: only a lookup on behalf of this library sees a definition at all.
  return dlsym(RTLD_DEFAULT, "contested_name") == nullptr ? 0 : 1;
}
