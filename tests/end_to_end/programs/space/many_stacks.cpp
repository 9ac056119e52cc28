// many_stacks COUNT [EACH]: makes EACH live allocations (1 by default) from each of COUNT (at most
// 2^24) different stacks of 30 frames and more. Each level calls the next from one of two call
// sites, by the bits of a number. The program prints the resources that it has used, and ends when
// its standard input ends. The costs from then on are those of the report.
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace {

constexpr int levels = 24;

unsigned allocations_of_stack = 1;

[[gnu::noinline]] int descend(int level, unsigned bits) {
  if (level == 0) {
    int result = 0;
    void* memory = nullptr;
    for (unsigned i = 0; i < allocations_of_stack && result == 0; ++i)
      result = static_cast<int>(cudaMalloc(&memory, 256));
    return result;
  }
  int result = 0;
  if ((bits & 1) != 0) {
    result = descend(level - 1, bits >> 1);
    asm volatile("" ::: "memory");  // no tail call, and no merging of the two calls
  } else {
    result = descend(level - 1, bits >> 1);
    asm volatile("nop" ::: "memory");
  }
  return result;
}

// The highest RSS so far, begun anew here, so that the rest of the process has its own.
long begin_peak_anew() {
  const int file = open("/proc/self/clear_refs", O_WRONLY);
  if (file < 0 || write(file, "5", 1) != 1) return -1;
  close(file);
  FILE* status = std::fopen("/proc/self/status", "r");
  char line[256];
  long kilobytes = -1;
  while (std::fgets(line, sizeof line, status) != nullptr) {
    if (std::strncmp(line, "VmHWM:", 6) == 0) kilobytes = std::atol(line + 6);
  }
  std::fclose(status);
  return kilobytes;
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned count = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 1000;
  if (argc > 2) allocations_of_stack = static_cast<unsigned>(std::atoi(argv[2]));
  for (unsigned i = 0; i < count; ++i) {
    if (const int result = descend(levels, i); result != 0) {
      std::printf("error %d\n", result);
      return 3;
    }
  }
  const long rss_kb = begin_peak_anew();
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  std::printf("{\"count\":%u,\"rss_kb\":%ld,\"cpu_ns\":%lld}\n", count, rss_kb,
              static_cast<long long>(used.tv_sec) * 1'000'000'000 + used.tv_nsec);
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
}
