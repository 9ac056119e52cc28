// opened_wrapper FREE-NAME HOW:LIBRARY...: opens the libraries (HOW is local or global), and
// allocates and frees through the last one. FREE-NAME is the function that it looks up by dlsym.
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <string>

namespace {

using Address = unsigned long long;

template <class Function>
Function find(void* handle, const char* name) {
  return reinterpret_cast<Function>(dlsym(handle, name));
}

void* open(const std::string& what) {
  const std::size_t colon = what.find(':');
  const std::string how = what.substr(0, colon);
  const int mode = how == "global" ? RTLD_GLOBAL : RTLD_LOCAL;
  void* const handle = dlopen(what.substr(colon + 1).c_str(), RTLD_NOW | mode);
  if (handle == nullptr) std::printf("%s\n", dlerror());
  return handle;
}

}  // namespace

int main(int count, char** arguments) {
  void* library = nullptr;
  for (int i = 2; i < count; ++i)
    if (library = open(arguments[i]); library == nullptr) return 2;
  const auto start = find<int (*)()>(library, "start");
  const auto take_memory = find<Address (*)(std::size_t)>(library, "take");
  const auto take = [take_memory](std::size_t bytes) {
    const Address address = take_memory(bytes);
    std::printf("%s\n", address != 0 ? "taken" : "refused");
    return address;
  };
  const auto give = find<int (*)(Address)>(library, "give");
  std::printf("start: %d\n", start());

  const Address first = take(1000);
  std::printf("given by name: %d\n", give(first));
  const Address second = take(1000);
  std::printf("the same address: %d\n", second == first);
  const auto from_library = find<int (*)(Address)>(library, arguments[1]);
  std::printf("given to the library's function: %d\n", from_library(second));
  const Address odd = take(999);
  std::printf("given by name: %d\n", give(odd));
  const auto of_process = find<int (*)(Address)>(RTLD_DEFAULT, arguments[1]);
  std::printf("the process has the function: %d\n", of_process != nullptr);
  if (of_process != nullptr) std::printf("given to it: %d\n", of_process(take(3000)));
  take(4000);
  return 0;
}
