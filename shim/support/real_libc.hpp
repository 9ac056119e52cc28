// Pointers to the libc functions that the shim hooks (dlsym, exit, prctl and others), for the hooks
// to call. Each is the definition that a call would reach without the shim: libc's own, unless
// another preloaded library wraps that function.
#pragma once

#include <dlfcn.h>
#include <pthread.h>

#include <cstddef>

namespace cuwarden::shim {

// Table of pointers to functions of libc. Unless its comment says otherwise, a pointer is not null,
// and leads to the definition that the loader finds next after the shim: libc's own, or another
// preloaded library's wrapper of it. Before glibc 2.34, the functions whose names begin with dl,
// and libc_dlsym, are libdl's, and so may be null.
struct RealLibc {
  // The dlsym of libc (before glibc 2.34, of libdl), or another preloaded library's wrapper of it.
  // Before glibc 2.34, null if there was neither when real_libc() filled the table, which it does
  // once.
  void* (*dlsym)(void*, const char*);
  // libc's own dlsym, never a wrapper of another library; for lookups that the shim makes itself.
  // Before glibc 2.34 it is libdl's, and null if libdl was not loaded yet when real_libc() filled
  // the table.
  void* (*libc_dlsym)(void*, const char*);
  // The dlvsym of libc (before glibc 2.34, of libdl), or the wrapper of another preloaded library.
  // Before glibc 2.34, null if there was neither when real_libc() filled the table.
  void* (*dlvsym)(void*, const char*, const char*);
  // The dlopen of libc (before glibc 2.34, of libdl), or the wrapper of another preloaded library.
  // Before glibc 2.34, null if there was neither when real_libc() filled the table.
  void* (*dlopen)(const char*, int);
  // The dlmopen of libc (before glibc 2.34, of libdl), or the wrapper of another preloaded library.
  // Before glibc 2.34, null if there was neither when real_libc() filled the table.
  void* (*dlmopen)(Lmid_t, const char*, int);
  // The dlclose of libc (before glibc 2.34, of libdl), or the wrapper of another preloaded library.
  // Before glibc 2.34, null if there was neither when real_libc() filled the table.
  int (*dlclose)(void*);
  // libc's syscall, or the wrapper of another preloaded library.
  long (*syscall)(long, long, long, long, long, long, long);
  // libc's prctl, or the wrapper of another preloaded library.
  int (*prctl)(int, unsigned long, unsigned long, unsigned long, unsigned long);
  // libc's own dlerror, never a wrapper. Before glibc 2.34 it is libdl's, and null if libdl was not
  // loaded yet when real_libc() filled the table. The shim calls it after its own failed lookups,
  // so that the program's next dlerror() does not report them.
  char* (*dlerror)();
  // libc's exit, or the wrapper of another preloaded library. It does not return. Its type does not
  // say so, since GCC and Clang have no common way to say it.
  void (*exit)(int);
  // libc's _exit, or the wrapper of another preloaded library. It does not return.
  void (*_exit)(int);
  // libc's _Exit, or the wrapper of another preloaded library. It does not return.
  void (*_Exit)(int);
  // libc's quick_exit, or the wrapper of another preloaded library. It does not return.
  void (*quick_exit)(int);
  // libc's abort, or the wrapper of another preloaded library. It does not return.
  void (*abort)();
  // libc's __assert_fail, which a failed assert() calls, or the wrapper of another preloaded
  // library. It does not return.
  void (*assert_fail)(const char*, const char*, unsigned, const char*);
  // libc's __libc_start_main, which calls main() and then exit(), or the wrapper of another
  // preloaded library.
  int (*start_main)(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(),
                    void*);
  // libc's own function, never a wrapper. Before glibc 2.34 it is libpthread's, and the pointer is
  // null if libpthread was not loaded yet when real_libc() filled the table; then the process had
  // one thread only.
  int (*pthread_getattr_np)(pthread_t, pthread_attr_t*);
  // libc's own function, never a wrapper. Before glibc 2.34 it is libpthread's, and the pointer is
  // null if libpthread was not loaded yet when real_libc() filled the table.
  int (*pthread_attr_getstack)(const pthread_attr_t*, void**, std::size_t*);
  // libc's own function, never a wrapper. Before glibc 2.34 it is libpthread's, and the pointer is
  // null if libpthread was not loaded yet when real_libc() filled the table.
  int (*pthread_attr_destroy)(pthread_attr_t*);
};

// Returns the table of libc's functions. The first call fills it from the symbol tables of the
// loaded objects, without dlsym. This is safe inside the loader and before any constructor has run.
const RealLibc& real_libc();

// Returns the function that libc, libdl or libpthread itself exports under this name, never a
// wrapper of another library; null if none of the three exports it.
void* function_in_libc(const char* name);

// Stores the function's address, as the loader found it, in a table's pointer `slot`. Several
// threads may fill a table at once; all of them store the same address.
template <class Function>
void store_function(Function& slot, void* found) {
  __atomic_store_n(reinterpret_cast<void**>(&slot), found, __ATOMIC_RELAXED);
}

}  // namespace cuwarden::shim
