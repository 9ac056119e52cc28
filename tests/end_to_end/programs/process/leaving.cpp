// leaving WORD...: allocates and frees, and does what the words say, in their order: leaves an
// allocation (leak), has a request refused (refused), ends (a status, abort or kill). Status 0
// where no word ends it.
#include <cuda_runtime_api.h>

#include <csignal>
#include <cstdlib>
#include <string_view>

#include "tests/end_to_end/programs/require.hpp"

int main(int count, char** words) {
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, 1 << 20));
  REQUIRE(cudaFree(memory));
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "leak") {
      REQUIRE(cudaMalloc(&memory, 1 << 20));
    } else if (word == "refused") {
      void* too_much = nullptr;
      if (cudaMalloc(&too_much, std::size_t{1} << 40) == cudaSuccess) return 9;
      cudaGetLastError();
    } else if (word == "abort") {
      std::abort();
    } else if (word == "kill") {
      raise(SIGKILL);
    } else {
      std::exit(std::atoi(words[i]));
    }
  }
  return 0;
}
