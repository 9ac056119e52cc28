// Loses mapped virtual memory. Releases the handle of every second mapping. The driver keeps a list
// of ranges of addresses. Its entries are not the program's pointers, so the mappings are lost.
//
// Prints how many mappings were lost.
#include <cuda_runtime_api.h>

#include <cstdio>

#include "tests/end_to_end/programs/reachability/mapped_memory.hpp"

namespace {

[[gnu::noinline]] bool lose(bool releases) { return map_device_memory(releases) != 0; }

}  // namespace

int main() {
  if (cudaFree(nullptr) != cudaSuccess) return 1;
  int lost = 0;
  for (; lost < 20; ++lost)
    if (!lose(lost % 2 == 1)) return 1;
  clear_stack();
  std::printf("{\"lost\":%d}\n", lost);
}
