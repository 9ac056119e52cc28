#include "tools/cuwarden/recovery.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "reporters/error_text.hpp"
#include "reporters/file_status.hpp"
#include "reporters/report_file.hpp"

namespace cuwarden {
namespace {

class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat status {};
    if (descriptor < 0) {
      error = errno;
      return;
    }
    if (status_of(descriptor, status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
      bytes_ = static_cast<std::size_t>(status.st_size);
      start_ = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, descriptor, 0);
    }
    if (start_ == MAP_FAILED) error = start_ == MAP_FAILED && bytes_ > 0 ? errno : EINVAL;
    close(descriptor);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (start_ != MAP_FAILED) munmap(start_, bytes_);
  }
  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(start_), start_ == MAP_FAILED ? 0 : bytes_};
  }
  int error = 0;

 private:
  void* start_ = MAP_FAILED;
  std::size_t bytes_ = 0;
};

// Field 22 of /proc/PID/stat, and whether the process is more than a zombie. A pid is reused; the
// pair (pid, start) is not.
bool is_running(std::uint32_t pid, std::uint64_t start_ticks) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  char text[1024];
  const ssize_t count = read(descriptor, text, sizeof text - 1);
  close(descriptor);
  text[count > 0 ? count : 0] = 0;
  const char* rest = std::strrchr(text, ')');  // the name may hold anything
  char state = 0;
  unsigned long long start = 0;
  if (rest == nullptr ||
      std::sscanf(
          rest + 1,
          " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
          &state, &start) != 2) {
    return false;
  }
  return state != 'Z' && state != 'X' && start == start_ticks;
}

}  // namespace

bool is_ledger(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return false;
  std::uint64_t start = 0;
  const bool matches =
      read(descriptor, &start, sizeof start) == sizeof start && start == ledger::magic;
  close(descriptor);
  return matches;
}

std::optional<std::string> recover(const std::string& ledger_path, const DeadProcess& waited_for,
                                   std::string& error, std::string* written) {
  const MappedFile file(ledger_path);
  if (file.error != 0) {
    error = "cannot read the ledger " + ledger_path + ": " + error_text(file.error);
    return std::nullopt;
  }
  ledger::ReadError read_error;
  const auto reader = ledger::Reader::open(file.bytes(), read_error);
  if (!reader) {
    error = "cannot read the ledger " + ledger_path + ": " + read_error.text;
    return std::nullopt;
  }
  const ledger::ProcessView process = reader->process();
  if (is_running(process.pid, process.start_ticks)) return std::nullopt;

  if (process.report_written) {
    if (written != nullptr) *written = process.report_path;
    unlink(ledger_path.c_str());
    return std::nullopt;
  }

  ReportOptions options;
  if (process.end_reason == ledger::EndReason::running) {
    const bool is_waited_for = process.pid == static_cast<std::uint32_t>(waited_for.pid);
    if (is_waited_for) options.signal = waited_for.signal;
    options.end_reason = options.signal ? ledger::EndReason::signal : ledger::EndReason::unknown;
  }
  ReportFile report{std::string(process.report_path)};
  if (!report.write(*reader, options)) {
    error = report.error() + "; the ledger stays at " + ledger_path;
    return std::nullopt;
  }
  unlink(ledger_path.c_str());
  return report.path();
}

}  // namespace cuwarden
