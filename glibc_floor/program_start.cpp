// A program's start on glibc 2.28. The start code that comes with glibc 2.34 and newer calls the
// __libc_start_main of that version, and leaves the constructors of the program to libc. Older ones
// expect a function that runs them. The hidden definition here is what the start code reaches; it
// calls the old version of the function, which every glibc has, and hands it such a function.
#include <cstddef>

extern "C" {

using Main = int (*)(int, char**, char**);
using Constructor = void (*)(int, char**, char**);

int cuwarden_old_libc_start_main(Main main, int argc, char** argv, Constructor init, void (*fini)(),
                                 void (*loader_fini)(), void* stack_end);
__asm__(".symver cuwarden_old_libc_start_main, __libc_start_main@GLIBC_2.2.5");

// Bounds of the program's constructors, from the linker.
[[gnu::visibility("hidden")]] extern const Constructor __init_array_start[];
[[gnu::visibility("hidden")]] extern const Constructor __init_array_end[];
[[gnu::visibility("hidden")]] void _init();

// Destructors and preinit functions need nothing: every loader runs them.
static void run_constructors(int argc, char** argv, char** environment) {
  _init();
  const std::ptrdiff_t count = __init_array_end - __init_array_start;
  for (std::ptrdiff_t i = 0; i < count; ++i) __init_array_start[i](argc, argv, environment);
}

// The start code of an older glibc brings a function that runs the constructors.
[[gnu::visibility("hidden")]] int __libc_start_main(Main main, int argc, char** argv,
                                                    Constructor init, void (*fini)(),
                                                    void (*loader_fini)(), void* stack_end) {
  return cuwarden_old_libc_start_main(main, argc, argv, init != nullptr ? init : run_constructors,
                                      fini, loader_fini, stack_end);
}

}  // extern "C"
