// Loads a plugin, calls it and unloads it, again and again: `reloading COUNT END PLUGIN…` takes the
// plugins in turns, and each is loaded at an address where none was before. END is `exit` or
// `kill`. Prints the number of different addresses.
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "tests/end_to_end/programs/let_time_pass.hpp"

namespace {

constexpr std::size_t page = 4096, bytes = 4u << 20;

}  // namespace

int main(int count, char** words) {
  std::set<std::uintptr_t> addresses;
  for (int i = 0; i < std::atoi(words[1]); ++i) {
    void* const plugin = dlopen(words[3 + i % (count - 3)], RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) {
      std::puts(dlerror());
      return 1;
    }
    auto* const leak = reinterpret_cast<int (*)(std::size_t)>(dlsym(plugin, "leak"));
    if (leak(bytes) != 0) return 2;
    const auto address = reinterpret_cast<std::uintptr_t>(leak);
    addresses.insert(address);
    dlclose(plugin);
    // A mapping takes the plugin's addresses, so that the plugin will be loaded at others.
    mmap(reinterpret_cast<void*>(address / page * page), page, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    let_time_pass(10);
  }
  std::printf("%zu\n", addresses.size());
  std::fflush(stdout);
  if (std::strcmp(words[2], "kill") == 0) raise(SIGKILL);
  return 0;
}
