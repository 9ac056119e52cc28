// The functions to which the shim's exports of libc's names forward: the next definition behind the
// shim, which is libc's own unless another preloaded library wraps the same function.
#pragma once

#include <dlfcn.h>
#include <pthread.h>

#include <cstddef>

namespace cuwarden::shim {

// Pointers to the functions. None is null, unless its comment says so.
struct RealLibc {
  void* (*dlsym)(void*, const char*);
  void* (*libc_dlsym)(void*, const char*);  // libc's own dlsym, for lookups by the shim itself
  void* (*dlvsym)(void*, const char*, const char*);
  void* (*dlopen)(const char*, int);
  void* (*dlmopen)(Lmid_t, const char*, int);
  int (*dlclose)(void*);
  long (*syscall)(long, long, long, long, long, long, long);
  int (*prctl)(int, unsigned long, unsigned long, unsigned long, unsigned long);
  // libc's own; clears the error that a failed call of the shim's would leave for the program
  char* (*dlerror)();
  // These do not return; the type cannot say so in a way that both compilers take.
  void (*exit)(int);
  void (*_exit)(int);
  void (*_Exit)(int);
  void (*quick_exit)(int);
  void (*abort)();
  void (*assert_fail)(const char*, const char*, unsigned, const char*);
  // libpthread's before glibc 2.34; null where it is not loaded, and there is one thread only.
  int (*pthread_getattr_np)(pthread_t, pthread_attr_t*);
  int (*pthread_attr_getstack)(const pthread_attr_t*, void**, std::size_t*);
  int (*pthread_attr_destroy)(pthread_attr_t*);
};

// Returns the functions. The first call reads them from the objects' symbol tables, which is safe
// inside the loader and before any constructor has run.
const RealLibc& real_libc();

// Returns the function of this name in libc, libdl or libpthread; null if none of them has it.
void* function_in_libc(const char* name);

}  // namespace cuwarden::shim
