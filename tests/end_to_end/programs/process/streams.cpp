// streams NUMBERS when_begun|when_ended HOW: says what it will leak, closes these descriptors
// ("12": 1 and 2) before its first CUDA call or after its last, and ends (HOW: return, kill). Other
// threads use the closed descriptors all the time, to the end, as threads do that print. A folder
// "taken" appears where one of them reached a file.
#include <cuda_runtime_api.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>

#include "tests/comes_about.hpp"
#include "tests/end_to_end/programs/require.hpp"

namespace {

constexpr std::size_t bytes = 4096;
constexpr int calls = 300;
constexpr int line_of_call = 31;  // in allocate(), as main() checks

[[gnu::noinline]] int allocate() {
  int line = 0;
  for (int i = 0; i < calls; ++i) {
    void* memory = nullptr;
    line = __LINE__ + 1;
    REQUIRE(cudaMalloc(&memory, bytes));
  }
  return line;
}

void use(int descriptor, std::atomic<int>& begun) {
  const std::string text(4096, 'x');  // each write would cover a page of a ledger
  char buffer[64];
  ++begun;
  for (;;) {
    const ssize_t count = descriptor == 0 ? read(descriptor, buffer, sizeof buffer)
                                          : write(descriptor, text.data(), text.size());
    if (count >= 0) mkdir("taken", 0700);
  }
}

void close_and_use(std::string_view numbers) {
  static std::atomic<int> begun{0};
  for (const char digit : numbers) close(digit - '0');
  for (const char digit : numbers) std::thread([=] { use(digit - '0', begun); }).detach();
  cuwarden::wait_until("each descriptor is in use",
                       [&] { return begun == static_cast<int>(numbers.size()); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string_view when = argv[2], how = argv[3];
  std::printf(
      "{\"leaked\":[{\"api\":\"cudaMalloc\",\"kind\":\"device\",\"count\":%d,\"bytes\":%zu,"
      "\"function\":\"allocate\",\"line\":%d}]}\n",
      calls, calls * bytes, line_of_call);
  std::fflush(stdout);
  if (when == "when_begun") close_and_use(argv[1]);
  if (allocate() != line_of_call) return 3;
  if (when == "when_ended") close_and_use(argv[1]);
  if (how == "kill") raise(SIGKILL);
  return 0;
}
