// The functions to which the shim's exports of libc's names forward: the next definition behind the
// shim, which is libc's own unless another preloaded library wraps the same function.
#pragma once

#include <dlfcn.h>
#include <pthread.h>

#include <cstddef>

namespace cuwarden::shim {

struct RealLibc {
  void* (*dlsym)(void*, const char*);
  void* (*libc_dlsym)(void*, const char*);  // libc's own, for the shim's own questions
  void* (*dlvsym)(void*, const char*, const char*);
  void* (*dlopen)(const char*, int);
  void* (*dlmopen)(Lmid_t, const char*, int);
  int (*dlclose)(void*);
  long (*syscall)(long, long, long, long, long, long, long);
  int (*prctl)(int, unsigned long, unsigned long, unsigned long, unsigned long);
  char* (*dlerror)();  // libc's own, to take back what the shim's own failures left for the program
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

// Read from the objects' symbol tables on first use. Safe inside the loader and before any
// constructor has run.
const RealLibc& real_libc();

// libc's own, libdl's or libpthread's; null where there is none.
void* function_in_libc(const char* name);

}  // namespace cuwarden::shim
