// Calls the plugin that is named once: three allocations in one source line.
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>

int main(int, char** words) {
  void* const plugin = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) return 1;
  auto* const leak =
      reinterpret_cast<int (*)(std::size_t)>(dlsym(plugin, "leak_three_times_in_a_line"));
  auto* const line = reinterpret_cast<int (*)()>(dlsym(plugin, "line_of_three_leaks"));
  std::printf("%d\n", line());
  for (int i = 0; i < 2; ++i)
    if (leak(1u << 20) != 0) return 2;
}
