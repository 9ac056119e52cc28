#include "shim/files/old_ledgers.hpp"

#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "reporters/files/file_status.hpp"
#include "reporters/reports/earlier_report.hpp"
#include "reporters/reports/report_file.hpp"
#include "runtime_hooks/core/files/folder_entries.hpp"
#include "runtime_hooks/core/files/open_file.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"

namespace cuwarden::shim {
namespace {

// Most time for old ledgers; the program's first CUDA call waits for it.
constexpr std::chrono::milliseconds most_time{200};

bool read_all(int descriptor, void* into, std::size_t bytes, std::uint64_t offset) {
  return pread(descriptor, into, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

class OtherLedger {
 public:
  // Returns false if the file holds no complete ledger of this layout.
  bool read(int descriptor) {
    descriptor_ = descriptor;
    const ledger::Header& head = header();
    return read_all(descriptor, bytes_, sizeof bytes_, 0) && head.magic == ledger::magic &&
           head.version == ledger::layout_version && head.header_bytes == sizeof head &&
           head.published.load(std::memory_order_relaxed) == 1;
  }
  const ledger::Header& header() const { return *reinterpret_cast<const ledger::Header*>(bytes_); }
  std::string text(ledger::StringRef reference) const {
    const auto& strings = header().regions[static_cast<std::size_t>(ledger::RegionId::strings)];
    std::string found(std::min<std::size_t>(reference.length, PATH_MAX), '\0');
    if (!read_all(descriptor_, found.data(), found.size(), strings.offset + reference.offset))
      found.clear();
    return found;
  }

 private:
  int descriptor_ = -1;
  alignas(ledger::Header) std::byte bytes_[sizeof(ledger::Header)];
};

// True if no process has this pid in the caller's pid namespace. A pid that was given to another
// process counts as alive.
bool is_gone(std::uint32_t pid) {
  return pid != 0 && pid <= INT_MAX && kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
}

struct DeadLedger {
  std::string name, report_path;
  ledger::ProcessView process;  // the texts that it refers to are not valid
  dev_t device = 0;
  ino_t inode = 0;
};

std::optional<DeadLedger> dead_ledger(int folder, const char* name,
                                      const ledger::ProcessView& own) {
  const Descriptor file = open_to_read(folder, name, Links::refused);
  struct stat status {};
  if (!file || status_of(file.number(), status) != 0 || status.st_uid != geteuid()) return {};
  OtherLedger other;
  if (!other.read(file.number())) return {};
  const ledger::Process& process = other.header().process;
  if (process.file_device != status.st_dev || process.file_inode != status.st_ino ||
      process.pid_namespace == 0 || process.pid_namespace != own.pid_namespace ||
      std::memcmp(process.boot_id, own.boot_id.data(), sizeof process.boot_id) != 0 ||
      !is_gone(process.pid) || other.text(process.program) != own.program)
    return {};
  DeadLedger dead;
  dead.name = name;
  dead.report_path = other.text(process.report_path);
  dead.process.pid = process.pid;
  dead.process.start_realtime_ns = process.start_realtime_ns;
  if (const std::uint32_t number = other.header().report_number.load(std::memory_order_relaxed))
    dead.process.report_number = number - 1;
  dead.device = status.st_dev;
  dead.inode = status.st_ino;
  return dead;
}

void remove(int folder, DeadLedger& dead) {
  const Descriptor file = open_to_read(folder, dead.name.c_str(), Links::refused);
  struct stat status {};
  // A command that recovers the ledger holds its lock, and has removed the file before it unlocks
  // it.
  if (!file || status_of(file.number(), status) != 0 || status.st_dev != dead.device ||
      status.st_ino != dead.inode || flock(file.number(), LOCK_EX | LOCK_NB) != 0)
    return;
  dead.process.report_path = dead.report_path;
  ReportFile::remove_unfinished(dead.process);
  if (dead.process.report_number) {
    if (const auto report = earlier_report(dead.process)) unlink(report->c_str());
  }
  unlinkat(folder, dead.name.c_str(), 0);
}

}  // namespace

void remove_old_ledgers(const ledger::Writer& own, unsigned keep) noexcept try {
  ledger::ReadError error;
  const auto reader = ledger::Reader::open(own.file.bytes(), error);
  const std::string path(own.file.path());
  if (!reader || path.empty()) return;
  const ledger::ProcessView process = reader->process();
  if (process.program.empty() || process.boot_id.size() != sizeof ledger::Process::boot_id) return;
  const std::size_t name_at = path.rfind('/') + 1;
  const Descriptor folder = open_folder_to_list(AT_FDCWD, path.substr(0, name_at).c_str());
  if (!folder) return;

  const auto end = std::chrono::steady_clock::now() + most_time;
  std::vector<DeadLedger> found;
  each_folder_entry(folder.number(), [&](const char* name) {
    if (std::strncmp(name, "cuwarden-ledger-", 16) != 0 ||
        path.compare(name_at, path.npos, name) == 0)
      return true;
    if (auto dead = dead_ledger(folder.number(), name, process)) found.push_back(std::move(*dead));
    return std::chrono::steady_clock::now() <= end;
  });
  if (found.size() <= keep) return;
  std::ranges::sort(found, [](const DeadLedger& left, const DeadLedger& right) {
    return left.process.start_realtime_ns > right.process.start_realtime_ns;
  });
  for (std::size_t i = keep; i < found.size(); ++i) remove(folder.number(), found[i]);
} catch (...) {
  // Old ledgers stay if there is no memory to look at them.
}

}  // namespace cuwarden::shim
