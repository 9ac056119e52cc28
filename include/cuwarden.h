/* What a program or a library may tell cuwarden, the tool that records and rescues GPU memory. In a
 * process that does not run under it, these functions do nothing: nothing has to be linked. C99 and
 * C++11 on; before glibc 2.34, link with -ldl.
 *
 * A reclaimer is a function that gives memory back which somebody keeps for later, such as the
 * cache of an allocator. Where a request of anybody in the process is about to fail (and rescues
 * are on, as they are unless CUWARDEN_POOL=off), cuwarden calls the reclaimers one after the other,
 * and asks the driver again after each. */
#ifndef CUWARDEN_H
#define CUWARDEN_H

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Gives back what is kept on the device (its CUDA ordinal; -1: page-locked host memory); `bytes`
 * are asked for. Returns how many bytes were given back, 0 for none.
 *
 * It runs in a thread of its own, with the CUDA context of the failed request current, while the
 * thread that asked waits, for CUWARDEN_SYNC_TIMEOUT at most; it is never called twice at once. It
 * may take locks and call CUDA; what it asks for in vain there is refused at once. */
typedef size_t (*cuwarden_reclaimer)(int device, size_t bytes, void* argument);

/* `name` is for the report; up to 63 characters.
 *
 * `modules`: the libraries whose functions may hold a lock that the reclaimer takes while they call
 * CUDA, as parts of their paths, comma-separated, up to 255 characters ("libc10_cuda.so"). Where
 * one of them is on the stack of the request that failed, or the stack cannot be seen to its first
 * frame (below a JIT compiler's code), the reclaimer is left out. The library that contains the
 * function need not be named, except by a program that is not position-independent; NULL is no
 * other. What the program itself contains is not left out for being on the stack.
 *
 * Returns a number for cuwarden_unregister_reclaimer(), or 0: the process does not run under
 * cuwarden, or this was not accepted, and one line on stderr says why. Takes copies of the texts.
 */
static inline int cuwarden_register_reclaimer(const char* name, const char* modules,
                                              cuwarden_reclaimer function, void* argument) {
  int (*registering)(const char*, const char*, cuwarden_reclaimer, void*) = 0;
  void* const found = dlsym(0 /* RTLD_DEFAULT */, "cuwarden_1_register_reclaimer");
  memcpy(&registering, &found, sizeof found);
  return found ? registering(name, modules, function, argument) : 0;
}

/* Afterwards it is not called any more, and no call of it runs; a reclaimer may do this itself. To
 * be called before the library that contains it is unloaded. Returns 0; or -1: it is not
 * registered, or a call has not returned within two seconds; this may be called again then. */
static inline int cuwarden_unregister_reclaimer(int number) {
  int (*unregistering)(int) = 0;
  void* const found = dlsym(0 /* RTLD_DEFAULT */, "cuwarden_1_unregister_reclaimer");
  memcpy(&unregistering, &found, sizeof found);
  return found && number ? unregistering(number) : -1;
}

#ifdef __cplusplus
}
#endif

#endif
