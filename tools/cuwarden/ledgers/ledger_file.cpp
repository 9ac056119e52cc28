#include "tools/cuwarden/ledgers/ledger_file.hpp"

#include <linux/magic.h>
#include <pwd.h>
#include <stdio.h>  // renameat2
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "reporters/words/error_text.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"
#include "tools/cuwarden/output/command_output.hpp"

namespace cuwarden {
namespace {

// Size of the largest ledger that is accepted. A writer makes none above 8 GiB and some headers.
constexpr std::size_t most_bytes = std::size_t{16} << 30;

// Handles SIGBUS. If a read went beyond the end of a mapped file, a page of zeros is put there and
// the read is repeated. In all other cases the command ends as it would without this handler.
void replace_by_zeros(int signal_number, siginfo_t* info, void*) {
  constexpr std::uintptr_t page = 4096;
  const int error = errno;
  auto* const start =
      reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(info->si_addr) / page * page);
  if (info->si_code != BUS_ADRERR ||
      mmap(start, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
    if (before_a_crash != nullptr) before_a_crash();
    signal(signal_number, SIG_DFL);
    raise(signal_number);  // unlike a fault, a signal that was sent does not come again by itself
  }
  errno = error;
}

// Returns true if the file claims far more rows than its blocks can hold. Such a file is not read:
// going through its holes would take hours, and on tmpfs it would fill the memory with zeros. A
// file system that compresses or packs small files holds many rows in few blocks, which is allowed
// for.
bool is_hollow(int descriptor, std::uint64_t there, const ledger::Reader& reader) {
  constexpr std::uint64_t slack = 8 << 20;
  const std::uint64_t claimed = reader.process().ledger_bytes;
  if (claimed <= there + slack) return false;
  struct statfs system {};
  constexpr decltype(system.f_type) zfs = 0x2fc12fc1;
  const bool compresses = fstatfs(descriptor, &system) == 0 &&
                          (system.f_type == BTRFS_SUPER_MAGIC || system.f_type == zfs ||
                           system.f_type == F2FS_SUPER_MAGIC);
  constexpr std::uint64_t most_compressed = 64;
  return !compresses || claimed / most_compressed > there + slack;
}

}  // namespace

void zeros_where_files_shrink() {
  struct sigaction action {};
  action.sa_sigaction = replace_by_zeros;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

bool is_ledger(const std::string& path) {
  const Descriptor file = open_to_read(path.c_str(), Links::refused);
  std::uint64_t start = 0;
  return file && read(file.number(), &start, sizeof start) == sizeof start &&
         start == ledger::magic;
}

std::string belongs_to(uid_t user) {
  const passwd* const entry = getpwuid(user);
  return "it belongs to " +
         (entry != nullptr ? std::string(entry->pw_name) : "user " + std::to_string(user));
}

std::unique_ptr<LedgerFile> LedgerFile::open_unread(const std::string& path, std::string& error,
                                                    Failure* failure, Kind kind) {
  const auto fail = [&](Failure reason, std::string why) {
    error = std::move(why);
    if (failure != nullptr) *failure = reason;
    return nullptr;
  };
  std::unique_ptr<LedgerFile> file(new LedgerFile);
  file->path_ = path;
  file->descriptor_ =
      open_to_read(path.c_str(), kind == Kind::kernel_link ? Links::followed : Links::refused);
  if (!file->descriptor_) return fail(Failure::unreadable, error_text(errno));
  struct stat status {};
  if (fstat(file->descriptor_.number(), &status) != 0)
    return fail(Failure::unreadable, error_text(errno));
  // The owner is that of the opened file, not of the file that the path led to before.
  if (kind == Kind::ours && status.st_uid != geteuid()) {
    return fail(Failure::other_user, belongs_to(status.st_uid));
  }
  file->device_ = status.st_dev;
  file->inode_ = status.st_ino;
  file->modified_realtime_ns_ =
      status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
  file->bytes_ = static_cast<std::size_t>(status.st_size);
  file->blocks_bytes_ = static_cast<std::size_t>(status.st_blocks) * 512;
  return file;
}

std::unique_ptr<LedgerFile> LedgerFile::open(const std::string& path, std::string& error,
                                             Failure* failure, Kind kind) {
  const auto fail = [&](Failure reason, std::string why) {
    error = std::move(why);
    if (failure != nullptr) *failure = reason;
    return nullptr;
  };
  auto file = open_unread(path, error, failure, kind);
  if (!file) return nullptr;
  // A process makes the file first and fills it afterwards.
  if (file->bytes_ == 0) return fail(Failure::unfinished, "the file is empty");
  if (file->bytes_ > most_bytes) return fail(Failure::no_ledger, "the file is too large");
  file->start_ = mmap(nullptr, file->bytes_, PROT_READ, MAP_SHARED, file->descriptor_.number(), 0);
  if (file->start_ == MAP_FAILED) {
    file->start_ = nullptr;
    return fail(Failure::unreadable, error_text(errno));
  }
  // Without this, a look into a hole would read megabytes ahead.
  madvise(file->start_, file->bytes_, MADV_RANDOM);
  ledger::ReadError reason;
  file->reader_ =
      ledger::Reader::open({static_cast<const std::byte*>(file->start_), file->bytes_}, reason);
  if (!file->reader_) {
    const auto* const header = static_cast<const ledger::Header*>(file->start_);
    const bool unfinished = file->bytes_ >= sizeof *header &&
                            header->published.load(std::memory_order_acquire) == 0 &&
                            (header->magic == 0 || header->magic == ledger::magic);
    return fail(unfinished ? Failure::unfinished : Failure::no_ledger, reason.text);
  }
  if (is_hollow(file->descriptor_.number(), file->blocks_bytes_, *file->reader_)) {
    return fail(Failure::no_ledger, "it claims more entries than the file holds");
  }
  return file;
}

LedgerFile::~LedgerFile() {
  if (start_ != nullptr) munmap(start_, bytes_);
}

bool LedgerFile::lock(int& error) const {
  error = 0;
  if (flock(descriptor_.number(), LOCK_EX | LOCK_NB) == 0) return true;
  if (errno != EWOULDBLOCK) error = errno;
  return false;
}

bool LedgerFile::is_original() const {
  const ledger::ProcessView process = reader_->process();
  return process.file_device == device_ && process.file_inode == inode_;
}

bool LedgerFile::is_copy() const { return reader_->process().file_inode != 0 && !is_original(); }

bool LedgerFile::is_still_at_its_path() const {
  struct stat status {};
  return lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

void LedgerFile::remove() const {
  if (is_still_at_its_path()) unlink(path_.c_str());
}

std::string LedgerFile::set_aside() const {
  constexpr std::string_view usual = "cuwarden-ledger-", aside = "cuwarden-damaged-ledger-";
  const std::size_t name = path_.rfind('/') + 1;  // 0 without a slash
  if (!std::string_view(path_).substr(name).starts_with(usual) || !is_still_at_its_path())
    return path_;
  std::string chosen =
      path_.substr(0, name) + std::string(aside) + path_.substr(name + usual.size());
  if (renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, chosen.c_str(), RENAME_NOREPLACE) != 0) {
    return path_;
  }
  return chosen;
}

}  // namespace cuwarden
