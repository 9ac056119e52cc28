// replaced_libraries keep|pipe LIBRARY...: has each library allocate, the first 1000 bytes, the
// second 2000. pipe: before it ends, it replaces each file by a pipe that has no writer.
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>

int main(int count, char** arguments) {
  alarm(20);
  for (int i = 2; i < count; ++i) {
    void* const library = dlopen(arguments[i], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return 3;
    const auto allocate =
        reinterpret_cast<int (*)(unsigned long)>(dlsym(library, "allocate_in_library"));
    const int result = allocate(static_cast<unsigned long>(i - 1) * 1000);
    std::printf("allocate: %d\n", result);
  }
  if (arguments[1] != std::string("pipe")) return 0;
  for (int i = 2; i < count; ++i)
    if (unlink(arguments[i]) != 0 || mkfifo(arguments[i], 0600) != 0) return 3;
}
