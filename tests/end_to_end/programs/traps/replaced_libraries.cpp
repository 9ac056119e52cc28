// replaced_libraries keep|pipe|rename LIBRARY...: has each library allocate, the first 1000 bytes,
// the second 2000. pipe: before it ends, it replaces each file by a pipe that has no writer.
// rename: it gives the file LIBRARY.new the name of each library.
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
  const std::string how = arguments[1];
  for (int i = 2; how == "rename" && i < count; ++i)
    if (std::rename((std::string(arguments[i]) + ".new").c_str(), arguments[i]) != 0) return 3;
  for (int i = 2; how == "pipe" && i < count; ++i)
    if (unlink(arguments[i]) != 0 || mkfifo(arguments[i], 0600) != 0) return 3;
}
