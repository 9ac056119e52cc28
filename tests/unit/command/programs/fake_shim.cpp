// A fake libcuwarden.so for the tests of `cuwarden run`. It appends $FAKE_REPORT to the list of
// reports, as the real shim does when it has written a report. It needs no CUDA.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

__attribute__((constructor)) static void append_report() {
  const char* list = std::getenv("CUWARDEN_REPORT_LIST");
  const char* report = std::getenv("FAKE_REPORT");
  if (list == nullptr || report == nullptr) return;
  const std::string line = std::string(report) + '\0';
  const int descriptor = open(list, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor < 0) return;
  if (write(descriptor, line.data(), line.size()) < 0) _exit(99);
  close(descriptor);
}
