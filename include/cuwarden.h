/* cuwarden.h: lets a program or a library register functions that give GPU memory back, and mark
 * the steps of its work.
 *
 * cuwarden records the GPU memory of a process, and serves requests that the CUDA driver refuses
 * for lack of memory, if it can. One way to do so are reclaimers. A reclaimer is a function of the
 * program that gives back memory which the program keeps for later, for example the cache of an
 * allocator. When a request of any thread in the process would fail for lack of memory, cuwarden
 * calls the registered reclaimers one after the other. After each it asks the driver again, until
 * the driver serves the request. No reclaimer is called with CUWARDEN_POOL=off, or with
 * CUWARDEN_SYNC_TIMEOUT=0. None is called either for a request larger than the device, while a
 * stream is being captured, or in a thread that the program has confined by a seccomp filter. If
 * the request comes from an allocator that empties its own cache and asks again, such as PyTorch's,
 * reclaimers are called for the repeated request.
 *
 * Steps are parts of a program's work that repeat, such as iterations of a training loop. If they
 * are marked, the report says of a leak that grows how many bytes each step adds, and since which
 * step. Steps can have names, such as those of tests. The report then names the steps in which
 * leaked memory was allocated.
 *
 * No library needs to be linked. In a process that does not run under cuwarden, the functions of
 * this header do nothing. The header is C99 and C++11. Before glibc 2.34, link with -ldl. */
#ifndef CUWARDEN_H
#define CUWARDEN_H

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A reclaimer: frees memory that the program keeps for later, and returns the bytes that it freed.
 *
 * device    CUDA ordinal of the device that lacks memory, 0 or more; -1 for page-locked host memory
 * bytes     size of the refused request, in bytes; freeing more or less than that is fine. 1 GiB
 *           for a refused call that is no allocation and needs an unknown amount
 * argument  the pointer given to cuwarden_register_reclaimer()
 * returns   bytes that were freed; 0 if none were
 *
 * Threads: cuwarden calls the function in a thread made for the call, whose current CUDA context is
 * that of the requesting thread; none if that thread has none. The requesting thread waits
 * meanwhile, for at most CUWARDEN_SYNC_TIMEOUT for all reclaimers together. One reclaimer is never
 * called twice at once. The function may take locks and may call CUDA. If the driver refuses a
 * request for memory that the function makes itself, the request fails at once: cuwarden does not
 * try to serve it.
 *
 * Errors: a C++ exception that leaves the function is caught. A warning in cuwarden's log (stderr,
 * unless CUWARDEN_LOG names a file) tells of it. */
/* NOLINTNEXTLINE(modernize-use-using): C has no `using` */
typedef size_t (*cuwarden_reclaimer)(int device, size_t bytes, void* argument);

/* Registers a reclaimer. At most 16 can be registered in a process.
 *
 * name      name for the report, 1 to 63 characters; copied
 * modules   libraries that may call CUDA while they hold a lock that the reclaimer takes;
 *           comma-separated parts of their paths ("libc10_cuda.so"); copied. Null or "" if there
 *           are none. "python:gil" stands for Python's global interpreter lock. The name of the
 *           library that contains `function` is added automatically. Together, at most 255
 *           characters.
 * function  the reclaimer; not null. Its code must stay loaded until it is unregistered.
 * argument  passed to each call of the function; may be null. The caller keeps it alive until the
 *           reclaimer is unregistered.
 * returns   a positive number, to be given to cuwarden_unregister_reclaimer(). 0 if nothing was
 *           registered: the process does not run under cuwarden, cuwarden is turned off
 *           (CUWARDEN_ENABLED=0), 16 reclaimers are registered, or an argument is not accepted. In
 *           the last two cases, a warning in cuwarden's log (stderr, unless CUWARDEN_LOG names a
 *           file) names the reason. It is written at the first CUDA call if there was none before.
 *
 * cuwarden skips a reclaimer if one of its modules is on the call stack of the requesting thread,
 * since that thread may hold the lock. With "python:gil", it skips the reclaimer if that thread
 * holds Python's lock. The reclaimer is also skipped if the stack cannot be
 * followed to its first frame, for example below code made by a JIT compiler. The main program is
 * on every stack, so it never counts as one of the modules. Therefore a reclaimer inside the main
 * program must not take a lock that is held during a CUDA call. A main program that is not
 * position-independent, and registers a function of a library, must name that library in `modules`:
 * the function's address then does not show which library contains the function.
 *
 * Any thread may call this at any time, except from a signal handler. */
static inline int cuwarden_register_reclaimer(const char* name, const char* modules,
                                              cuwarden_reclaimer function, void* argument) {
  int (*registering)(const char*, const char*, cuwarden_reclaimer, void*) = 0;
  void* const found = dlsym(0 /* RTLD_DEFAULT */, "cuwarden_1_register_reclaimer");
  memcpy(&registering, &found, sizeof found);
  return found ? registering(name, modules, function, argument) : 0;
}

/* Unregisters a reclaimer. To be called before the library that contains the reclaimer is unloaded.
 * From now on cuwarden begins no call of the reclaimer. If a call is under way in another thread,
 * this function waits until that call has returned, for up to two seconds.
 *
 * number    the positive number that cuwarden_register_reclaimer() returned for the reclaimer
 * returns   0 on success: no call of the reclaimer is under way. -1 if no reclaimer with this
 *           number is registered, if the process does not run under cuwarden, or if a call of the
 *           reclaimer did not return within two seconds.
 *           If a call did not return, this function may be called again, to go on waiting.
 *
 * Any thread may call this at any time, except from a signal handler. A reclaimer may unregister
 * itself; then this function returns 0 without waiting for the reclaimer's own call. */
static inline int cuwarden_unregister_reclaimer(int number) {
  int (*unregistering)(int) = 0;
  void* const found = dlsym(0 /* RTLD_DEFAULT */, "cuwarden_1_unregister_reclaimer");
  memcpy(&unregistering, &found, sizeof found);
  return found && number ? unregistering(number) : -1;
}

/* Marks the start of a step: a part of the program's work that repeats, such as an iteration of a
 * training loop. To be called once in each iteration; the step lasts until the next call.
 *
 * Steps are counted from 1 in the whole process, whichever thread calls. A report judges leaks by
 * steps if there were four or more. A process without a CUDA call has no report.
 *
 * Any thread may call this at any time, except from a signal handler. */
static inline void cuwarden_step(void) {
  void (*marking)(void) = 0;
  void* const found = dlsym(0 /* RTLD_DEFAULT */, "cuwarden_1_step");
  memcpy(&marking, &found, sizeof found);
  if (found) marking();
}

/* Marks the start of a step that has a name, such as a test. The report lists for each leak the
 * named steps in which its allocations were made, whichever thread made them. The name lasts until
 * a step with another name, or until cuwarden_named_step(""). Steps without a name
 * (cuwarden_step()) do not end it. A forked child goes on in the named step of its parent.
 *
 * name      text in UTF-8, of which 255 bytes are kept; copied. Null or "" ends the named step
 *
 * Each named step takes about 100 bytes of the recording's file. After some 90,000 of them, further
 * steps have no names, and the report says that names are missing. Any thread may call this at any
 * time, except from a signal handler. */
static inline void cuwarden_named_step(const char* name) {
  void (*marking)(const char*) = 0;
  void* const found = dlsym(0 /* RTLD_DEFAULT */, "cuwarden_1_named_step");
  memcpy(&marking, &found, sizeof found);
  if (found) marking(name);
}

#ifdef __cplusplus
}
#endif

#endif
