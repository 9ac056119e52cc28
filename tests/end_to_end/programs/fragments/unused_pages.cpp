// unused_pages KEEP [confined]: fills the current device with blocks of 1 MiB and frees seven of
// eight, so that pages lie unused that were mapped in one piece with used ones. Frees KEEP MiB
// more, which the driver then has free. Lets two seconds pass, confines itself by a seccomp filter
// if told so, and frees one block more. The last line has the number of surviving blocks that have
// lost their contents.
#include <cuda_runtime_api.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "tests/end_to_end/programs/device_memory.hpp"
#include "tests/end_to_end/programs/let_time_pass.hpp"
#include "tests/end_to_end/programs/require.hpp"
#include "tests/end_to_end/programs/sandbox/filter.hpp"

namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;

// Has the kernel end the process if the calling thread calls membarrier, by which all threads are
// made to wait before memory is moved.
bool confine() {
  static sandbox::Filter filter;
  filter.answer(SYS_membarrier, SECCOMP_RET_KILL_PROCESS);
  filter.answer_others(SECCOMP_RET_ALLOW);
  sock_fprog program = filter.program();
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return 2;
  const std::size_t keep = std::strtoull(argv[1], nullptr, 0) * MiB;
  void* kept = nullptr;
  if (keep != 0) REQUIRE(cudaMalloc(&kept, keep));
  // The driver needs some memory itself.
  std::vector<int*> blocks;
  while (cuwarden::test::free_bytes() > 24 * MiB) {
    REQUIRE(cudaMalloc(reinterpret_cast<void**>(&blocks.emplace_back()), MiB));
    const int number = static_cast<int>(blocks.size());
    REQUIRE(cudaMemcpy(blocks.back(), &number, sizeof number, cudaMemcpyHostToDevice));
  }
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (i % 8 != 3) REQUIRE(cudaFree(blocks[i]));
  if (keep != 0) REQUIRE(cudaFree(kept));
  let_time_pass(2000);
  if (argc == 3 && std::string_view(argv[2]) == "confined" && !confine()) return 3;
  REQUIRE(cudaFree(blocks[3]));
  int lost = 0;
  for (std::size_t i = 11; i < blocks.size(); i += 8) {
    int found = 0;
    REQUIRE(cudaMemcpy(&found, blocks[i], sizeof found, cudaMemcpyDeviceToHost));
    lost += found != static_cast<int>(i) + 1 ? 1 : 0;
  }
  std::printf("{\"blocks\": %zu, \"lost\": %d}\n", blocks.size(), lost);
  return 0;
}
