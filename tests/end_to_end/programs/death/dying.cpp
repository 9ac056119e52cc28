// dying HOW: allocates, says what is live, and then dies without an end that a shim could see, or
// waits to be killed.
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/end_to_end/programs/expected_totals.hpp"
#include "tests/end_to_end/programs/require.hpp"

namespace {

[[gnu::noinline]] void allocate_two() {
  int line = 0;
  for (int i = 0; i < 2; ++i) {
    void* memory = nullptr;
    line = __LINE__ + 1;
    REQUIRE(cudaMalloc(&memory, 3 << 20));
  }
  expected::Account account;
  account.leaked({"cudaMalloc", "device", "allocate_two", line, 2, 6 << 20});
  account.print();
  std::fflush(stdout);
}

[[gnu::noinline]] int endless(volatile int* above) {
  volatile int here[1024];
  here[0] = *above + 1;
  if (here[0] < 0) return 0;  // never: the stack ends first
  return endless(here) + here[0];
}

int beyond_the_end_of_a_file() {
  char path[] = "/tmp/dying-XXXXXX";
  const int file = mkstemp(path);
  if (file < 0 || unlink(path) != 0) return 3;
  auto* const page =
      static_cast<volatile char*>(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0));
  return page[0];
}

void spoil_ledger() {
  const char* const folder = std::getenv("CUWARDEN_LEDGER_DIR");
  if (folder == nullptr) std::abort();
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("cuwarden-ledger-"))
      std::filesystem::resize_file(entry.path(), 64 << 10);
  }
}

void* wait_for_ever(void*) {
  for (;;) pause();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  allocate_two();
  if (how == "spoil_ledger") spoil_ledger();
  if (how == "kill" || how == "spoil_ledger") raise(SIGKILL);
  if (how == "terminate") raise(SIGTERM);
  if (how == "segfault") *static_cast<volatile int*>(nullptr) = 1;
  if (how == "bus") return beyond_the_end_of_a_file();
  if (how == "overflow") {
    volatile int bottom = 0;
    return endless(&bottom);
  }
  if (how == "wait") wait_for_ever(nullptr);
  if (how == "exec") execl("/bin/sleep", "sleep", "100", nullptr);
  if (how == "wait_without_main_thread") {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, wait_for_ever, nullptr) != 0) return 3;
    pthread_exit(nullptr);
  }
  return 2;
}
