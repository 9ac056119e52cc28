// Functions that glibc 2.34 moved into libc, from libdl and libpthread, each under a new version,
// to which a linker of today binds. The old version is in every glibc: the hidden definitions here
// call it.
#include <dlfcn.h>
#include <pthread.h>

// Defines RESULT NAME(PARAMETERS) by the function's old VERSION.
#define CUWARDEN_OLD(version, result, name, parameters, arguments)           \
  extern "C" result cuwarden_old_##name parameters noexcept;                 \
  __asm__(".symver cuwarden_old_" #name "," #name "@" version);              \
  extern "C" [[gnu::visibility("hidden")]] result name parameters noexcept { \
    return cuwarden_old_##name arguments;                                    \
  }

CUWARDEN_OLD("GLIBC_2.2.5", void*, dlopen, (const char* path, int flags), (path, flags))
CUWARDEN_OLD("GLIBC_2.2.5", void*, dlsym, (void* library, const char* name), (library, name))
CUWARDEN_OLD("GLIBC_2.2.5", int, dlclose, (void* library), (library))
CUWARDEN_OLD("GLIBC_2.2.5", char*, dlerror, (), ())
CUWARDEN_OLD("GLIBC_2.3.3", int, dlinfo, (void* library, int request, void* result),
             (library, request, result))

CUWARDEN_OLD("GLIBC_2.2.5", int, pthread_create,
             (pthread_t * thread, const pthread_attr_t* attributes, void* (*body)(void*),
              void* argument),
             (thread, attributes, body, argument))
CUWARDEN_OLD("GLIBC_2.2.5", int, pthread_attr_setstacksize,
             (pthread_attr_t * attributes, size_t bytes), (attributes, bytes))
CUWARDEN_OLD("GLIBC_2.18", int, pthread_setattr_default_np, (const pthread_attr_t* attributes),
             (attributes))
CUWARDEN_OLD("GLIBC_2.2.5", int, pthread_detach, (pthread_t thread), (thread))
CUWARDEN_OLD("GLIBC_2.2.5", int, pthread_key_create, (pthread_key_t * key, void (*end)(void*)),
             (key, end))
CUWARDEN_OLD("GLIBC_2.2.5", int, pthread_key_delete, (pthread_key_t key), (key))
CUWARDEN_OLD("GLIBC_2.2.5", void*, pthread_getspecific, (pthread_key_t key), (key))
CUWARDEN_OLD("GLIBC_2.2.5", int, pthread_setspecific, (pthread_key_t key, const void* value),
             (key, value))

CUWARDEN_OLD("GLIBC_2.2.5", int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
CUWARDEN_OLD("GLIBC_2.2.5", int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))
CUWARDEN_OLD("GLIBC_2.2.5", int, pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock))

// Not noexcept: a thread that waits in it can be cancelled.
extern "C" int cuwarden_old_pthread_join(pthread_t thread, void** result);
__asm__(".symver cuwarden_old_pthread_join, pthread_join@GLIBC_2.2.5");
extern "C" [[gnu::visibility("hidden")]] int pthread_join(pthread_t thread, void** result) {
  return cuwarden_old_pthread_join(thread, result);
}
