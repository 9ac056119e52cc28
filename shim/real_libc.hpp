// libc's own versions of the functions that the shim exports in their place.
#pragma once

#include <dlfcn.h>

namespace cuwarden::shim {

struct RealLibc {
  void* (*dlsym)(void*, const char*);
  void* (*dlvsym)(void*, const char*, const char*);
  void* (*dlopen)(const char*, int);
  void* (*dlmopen)(Lmid_t, const char*, int);
  int (*dlclose)(void*);
  // These do not return; the type cannot say so in a way that both compilers take.
  void (*_exit)(int);
  void (*_Exit)(int);
  void (*quick_exit)(int);
  void (*abort)();
  void (*assert_fail)(const char*, const char*, unsigned, const char*);
};

// Read from libc's symbol table on first use (libdl's too, before glibc 2.34). Safe inside the
// loader and before any constructor has run.
const RealLibc& real_libc();

}  // namespace cuwarden::shim
