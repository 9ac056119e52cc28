// Libraries that bring CUDA into the process and are unloaded before it ends.
// `driver LIBCUDA`: libcuda itself. `plugin PLUGIN`: a library that needs a cudart, twice.
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

namespace {

template <class Function>
Function find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

int use_driver(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  std::printf("global look-up of a local library: %d\n", dlsym(RTLD_DEFAULT, "cuInit") != nullptr);
  void* context = nullptr;
  unsigned long long pointer = 0;
  std::printf("init %d\n", find<int (*)(unsigned)>(library, "cuInit")(0));
  find<int (*)(void**, int)>(library, "cuDevicePrimaryCtxRetain")(&context, 0);
  find<int (*)(void*)>(library, "cuCtxSetCurrent")(context);
  std::printf("allocate %d\n", find<int (*)(unsigned long long*, std::size_t)>(
                                   library, "cuMemAlloc_v2")(&pointer, 1000));
  std::printf("unload %d\n", dlclose(library));
  return 0;
}

int use_plugin(const char* path) {
  for (int i = 0; i < 2; ++i) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::puts(dlerror());
      return 1;
    }
    std::printf("allocate and free %d\n",
                find<int (*)(std::size_t)>(library, "allocate_and_free")(1000));
    std::printf("unload %d\n", dlclose(library));
  }
  return 0;
}

}  // namespace

int main(int, char** arguments) {
  return std::strcmp(arguments[1], "driver") == 0 ? use_driver(arguments[2])
                                                  : use_plugin(arguments[2]);
}
