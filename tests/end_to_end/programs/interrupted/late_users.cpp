// late_users HOW: a detached thread ("thread") or the handler of a signal ("handler") uses an
// object that the program destroys in its destructors. Neither is stopped before, as in many
// programs.
//
// The object is used each time the shim opens a file, as it must to look up names. A use after the
// destructors ends the program by SIGSEGV. Status 3: the shim opened no file between the return of
// main() and the destructors.
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "../replaced_imports.hpp"
#include "tests/comes_about.hpp"

namespace {

std::atomic<bool> has_returned{false};         // true once main() has reached its end
std::atomic<bool> has_late_use{false};         // true once the object was used after that
std::atomic<unsigned> wanted{0}, answered{0};  // uses that the thread was asked for, and has made
bool is_by_thread = false;                     // true if the thread uses the object

struct Logger {
  char* volatile buffer = static_cast<char*>(std::malloc(100));
  void log() {
    std::strcpy(buffer, "tick");
    if (has_returned) has_late_use = true;
  }
  ~Logger() {
    if (!has_late_use) _exit(3);
    std::free(buffer);
    buffer = nullptr;
  }
} logger;

// Takes the part of openat() for the shim.
int open_with_use(int folder, const char* path, int flags, mode_t mode) {
  if (is_by_thread) {
    const unsigned mine = ++wanted;
    cuwarden::wait_until("the object was used", [&] { return answered >= mine; });
  } else {
    raise(SIGALRM);
  }
  return openat(folder, path, flags, mode);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  is_by_thread = std::string(argv[1]) == "thread";
  signal(SIGALRM, [](int) { logger.log(); });
  if (is_by_thread)
    std::thread([] {
      for (;;) {
        cuwarden::wait_until("another use is wanted", [] { return wanted != answered; });
        logger.log();
        ++answered;
      }
    }).detach();
  if (!replace_import_of_shim("openat64", reinterpret_cast<void*>(open_with_use))) return 2;
  void* block = nullptr;
  for (int i = 0; i < 100; ++i) cudaMalloc(&block, 4096);
  has_returned = true;
}
