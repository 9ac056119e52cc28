// moving_neighbour MIB [resting]: holds MIB MiB of the device. Says "ready", and then takes and
// releases further memory at random until its input ends. With `resting`, takes no more memory.
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "tests/end_to_end/programs/require.hpp"

int main(int argc, char** argv) {
  constexpr std::size_t mib = 1 << 20;
  if (argc < 2) return 2;
  const std::size_t held = std::strtoul(argv[1], nullptr, 10) * mib;
  CUcontext context = nullptr;
  REQUIRE(cuInit(0));
  REQUIRE(cuDevicePrimaryCtxRetain(&context, 0));
  REQUIRE(cuCtxSetCurrent(context));
  CUdeviceptr memory = 0;
  REQUIRE(cuMemAlloc(&memory, held));
  std::puts("ready");
  std::fflush(stdout);
  if (argc > 2) {
    while (std::getchar() != EOF) continue;
    return 0;
  }

  std::minstd_rand random;
  std::vector<CUdeviceptr> taken;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  while (poll(&input, 1, 0) == 0) {
    if (taken.size() < 8 && random() % 2 == 0) {
      REQUIRE(cuMemAlloc(&memory, (2 + random() % 64) * mib));
      taken.push_back(memory);
    } else if (!taken.empty()) {
      REQUIRE(cuMemFree(taken.back()));
      taken.pop_back();
    }
    usleep(static_cast<useconds_t>(random() % 100));
  }
}
