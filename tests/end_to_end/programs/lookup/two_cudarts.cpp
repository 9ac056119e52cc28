// two_cudarts FIRST SECOND OTHER: opens two libraries that use a runtime each, and sees whether
// each one's calls and errors stay with its own. OTHER is the second's runtime.
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace {

using Sized = int (*)(std::size_t);
using Plain = int (*)();

template <typename Function>
Function find(void* library, const char* name) {
  void* found = library == nullptr ? nullptr : dlsym(library, name);
  if (found == nullptr) {
    std::printf("no %s\n", name);
    std::exit(3);
  }
  return reinterpret_cast<Function>(found);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  void* first = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  void* second = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  void* other = dlopen(argv[3], RTLD_NOW | RTLD_LOCAL);
  constexpr std::size_t mib = std::size_t{1} << 20;
  for (int i = 0; i < 2; ++i)
    std::printf("first allocates: %d\n", find<Sized>(first, "allocate")(mib));
  for (int i = 0; i < 3; ++i)
    std::printf("second allocates: %d\n", find<Sized>(second, "allocate")(2 * mib));
  std::printf("first: %d\n", find<Sized>(first, "allocate_and_free")(3 * mib));
  std::printf("second: %d\n", find<Sized>(second, "allocate_and_free")(4 * mib));
  std::printf("second fails: %d\n", find<Sized>(second, "allocate")(std::size_t{1} << 63));
  std::printf("error in first: %d\n", find<Plain>(first, "last_error")());
  std::printf("error in second: %d\n", find<Plain>(second, "last_error")());
  std::printf("calls of the second's runtime: %d\n", find<Plain>(other, "other_cudart_calls")());
}
