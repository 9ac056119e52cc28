// allocate COUNT BYTES [DEPTH]: the smallest program that leaks; DEPTH calls lie between main and
// the allocation.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

static int line = 0;

[[gnu::noinline]] static int allocate(int depth, std::size_t bytes) {
  if (depth > 0) {
    int result = allocate(depth - 1, bytes);
    asm volatile("" ::: "memory");  // no tail call: each level is a frame
    return result;
  }
  void* memory = nullptr;
  line = __LINE__ + 1;
  int result = static_cast<int>(cudaMalloc(&memory, bytes));
  asm volatile("" ::: "memory");
  return result;
}

int main(int argc, char** argv) {
  int count = argc > 1 ? std::atoi(argv[1]) : 1;
  std::size_t bytes =
      argc > 2 ? static_cast<std::size_t>(std::atol(argv[2])) : std::size_t{1} << 20;
  int depth = argc > 3 ? std::atoi(argv[3]) : 0;
  for (int i = 0; i < count; ++i) {
    int result = allocate(depth, bytes);
    if (result != 0) {
      std::printf("error %d\n", result);
      return 3;
    }
  }
  std::printf(
      "{\"leaked\":[{\"api\":\"cudaMalloc\",\"kind\":\"device\",\"count\":%d,\"bytes\":%zu,"
      "\"function\":\"allocate\",\"line\":%d}]}\n",
      count, static_cast<std::size_t>(count) * bytes, line);
}
