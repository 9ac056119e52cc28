// A plugin that leaks device memory. Built twice: what is built anew has another build id and,
// before the leak, another function.
#include <cstddef>

extern "C" int cudaMalloc(void**, std::size_t);

#define EXPORTED extern "C" [[gnu::visibility("default")]] int

#ifdef REBUILT
EXPORTED unrelated(int value) { return value * 7 + 3; }
#endif

EXPORTED leak(std::size_t bytes) {
  void* memory = nullptr;
  return cudaMalloc(&memory, bytes);
}
EXPORTED leak_three_times_in_a_line(std::size_t bytes) {
  void* memory = nullptr;
  return cudaMalloc(&memory, bytes) + cudaMalloc(&memory, bytes) + cudaMalloc(&memory, bytes);
}
EXPORTED line_of_three_leaks() { return __LINE__ - 2; }
