// Sizes are found by halving: what a resource limit, an overcommit rule or a file system refuses at
// 8 GiB it may grant at 1 GiB. The file is sparse, so the size is only an upper bound.
#include "runtime_hooks/ledger/storage/backing_file.hpp"

#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/files/small_file.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "runtime_hooks/ledger/storage/file_systems.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace cuwarden::ledger {
namespace {

// The C library's own stat functions are newer than the oldest glibc to be supported (2.33).
bool status_of(int fd, struct stat& status) { return syscall(SYS_fstat, fd, &status) == 0; }
bool status_of(const char* path, struct stat& status) {
  return syscall(SYS_lstat, path, &status) == 0;
}

// Returns how much of the address space that RLIMIT_AS leaves the ledger may map, in bytes. The
// rest is for the program: a CUDA driver's reservations alone may need most of it. 16 MiB are
// enough for 100,000 live allocations.
std::uint64_t address_space_share() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  char text[128];
  std::string_view statm = read_small_file("/proc/self/statm", text);
  const std::uint64_t used =
      take_number(statm).value_or(0) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t left = limit.rlim_cur > used ? limit.rlim_cur - used : 0;
  constexpr std::uint64_t small = 16 << 20;
  return std::max(left / 64, std::min(left / 8, small));
}

std::uint64_t file_size_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return limit.rlim_cur;
}

// With strict accounting every private page counts at once, touched or not.
bool overcommit_is_strict() {
  char text[16];
  return read_small_file("/proc/sys/vm/overcommit_memory", text).starts_with('2');
}

}  // namespace

bool BackingFile::create(const BackingRequest& request) noexcept {
  const ErrnoGuard guard;
  populate_unknown_ = request.without_populate;
  std::uint64_t limit = std::min(default_total_bytes, address_space_share());
  if (request.largest_bytes != 0) limit = std::min(limit, request.largest_bytes);
  const std::uint64_t file_limit = std::min(limit, file_size_limit());
  // If the limit of file sizes is below the least useful size, a ledger in memory can hold more
  // than one in a file.
  if (file_limit == limit || file_limit >= smallest_useful_file_bytes) {
    for (const char* const folder : request.folders) {
      if (folder != nullptr && create_in(folder, request, file_limit)) return true;
    }
  }
  path_[0] = '\0';
  return create_in_memory(request, limit);
}

bool BackingFile::create_in(const char* folder, const BackingRequest& request,
                            std::uint64_t limit) noexcept {
  struct statfs fs {};
  if (statfs(folder, &fs) != 0 || !can_hold_a_ledger(static_cast<long>(fs.f_type))) return false;

  // The path is kept absolute: the host may change its directory. Symbolic links stay in it:
  // before it is used again, the file behind it is compared with ours. (Not by realpath, which
  // may allocate from the host's heap.)
  char here[PATH_MAX] = "";
  if (folder[0] != '/') {
    if (syscall(SYS_getcwd, here, sizeof here - 1) <= 0 || here[0] != '/') return false;
    std::strcat(here, "/");
  }
  Descriptor file;
  for (int attempt = 0; !file && attempt < 100; ++attempt) {
    const int length =
        attempt == 0
            ? std::snprintf(path_, sizeof path_, "%s%s/%s", here, folder, request.name)
            : std::snprintf(path_, sizeof path_, "%s%s/%s.%d", here, folder, request.name, attempt);
    if (length < 0 || static_cast<std::size_t>(length) >= sizeof path_) return false;
    file = make_file(AT_FDCWD, path_, O_RDWR);
    if (!file && errno != EEXIST) return false;
  }
  if (!file) return false;

  const int fd = file.number();
  bool usable = true;
  if (fs.f_type == btrfs_type) {
    // Copy-on-write is turned off: it needs new space for a page that was already written, so a
    // full disk would then raise a SIGBUS.
    int flags = 0;
    usable = ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0;
    flags |= FS_NOCOW_FL;
    usable = usable && ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;
  }
  // This lock shows that the process is alive: to other containers, too, and even if the pid was
  // given to another process. It belongs to the open file, which the mapping keeps open after the
  // descriptor is closed. Only readers ever wait for it.
  const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
  usable = usable && map_file(fd, limit, request);
  file.reset();
  if (usable && locked) {
    // overlayfs maps another file than the one that was opened, and that file is not locked.
    const Descriptor again = open_again();
    locked_ = again && flock(again.number(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  }
  if (usable && fill(0, round_up(sizeof(Header), page_bytes))) return true;
  mapping_.reset();
  locked_ = false;
  unlink(path_);
  path_[0] = '\0';
  return false;
}

bool BackingFile::map_file(int fd, std::uint64_t limit, const BackingRequest& request) noexcept {
  struct stat status {};
  if (!status_of(fd, status)) return false;
  // A strict umask would keep the owner's other processes from reading the ledger. File systems
  // without modes (FAT) refuse.
  if (status.st_size == 0 && (status.st_mode & 0777) != 0600) {
    [[maybe_unused]] const int refused = fchmod(fd, 0600);
  }
  device_ = status.st_dev;
  inode_ = status.st_ino;
  for (Geometry plan = largest_geometry(limit, request.hooks); plan.total_bytes != 0;
       plan = largest_geometry(plan.total_bytes - 1, request.hooks)) {
    if (ftruncate(fd, static_cast<off_t>(plan.total_bytes)) != 0) continue;
    Mapping made(mmap(nullptr, plan.total_bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0),
                 plan.total_bytes);
    if (!made) continue;
    made.keep_to_this_process();
    made.keep_unlocked();
    // Readahead into the hole is turned off. On ext4 with a readahead of 8 MiB, each step of
    // filling took 2.4 ms with it and 0.01 ms without. It also filled megabytes of page cache
    // with zeros.
    madvise(made.data(), made.size(), MADV_RANDOM);
    mapping_ = std::move(made);
    geometry_ = plan;
    return true;
  }
  return false;
}

bool BackingFile::create_in_memory(const BackingRequest& request, std::uint64_t limit) noexcept {
  if (overcommit_is_strict()) limit = std::min(limit, smallest_useful_file_bytes);
  for (Geometry plan = largest_geometry(limit, request.hooks); plan.total_bytes != 0;
       plan = largest_geometry(plan.total_bytes - 1, request.hooks)) {
    mapping_ = Mapping::reserved(plan.total_bytes);
    if (!mapping_) continue;
    geometry_ = plan;
    return open_memory(0, round_up(sizeof(Header), page_bytes));
  }
  // The host is at its limit of addresses; the smallest ledger is still better than none.
  geometry_ = plan_geometry(0, request.hooks);
  mapping_ = Mapping::reserved(geometry_.total_bytes);
  return mapping_ && open_memory(0, round_up(sizeof(Header), page_bytes));
}

bool BackingFile::refused(GrowthOperation operation) noexcept {
  refused_growth_ = {operation, errno};
  return false;
}

// Makes the range writable. Calls mprotect itself, because the report shows the errno of a failure.
bool BackingFile::open_memory(std::uint64_t offset, std::uint64_t bytes) noexcept {
  const ErrnoGuard guard;
  return mprotect(base() + offset, bytes, PROT_READ | PROT_WRITE) == 0 ||
         refused(GrowthOperation::allow_access);
}

bool BackingFile::fill(std::uint64_t offset, std::uint64_t bytes) noexcept {
  const ErrnoGuard guard;
  if (!open_memory(offset, bytes)) return false;
  if (offset != 0 && !has_room_on_disk(bytes)) return refused(GrowthOperation::allocate);
  while (!populate_unknown_) {
    if (madvise(base() + offset, bytes, MADV_POPULATE_WRITE) == 0) return true;
    if (errno == EINTR || errno == EAGAIN) continue;
    // These errors mean that there is no room. Any other error comes from an older kernel, or
    // from a seccomp filter.
    if (errno == EFAULT || errno == ENOMEM || errno == EHWPOISON)
      return refused(GrowthOperation::allocate);
    populate_unknown_ = true;
  }
  return fill_by_path(offset, bytes);
}

// Returns false, with errno, if the file system would have too little left for the program's own
// files. The program's next checkpoint is worth more than records that outlive a kill.
bool BackingFile::has_room_on_disk(std::uint64_t bytes) const noexcept {
  constexpr std::uint64_t largest_reserve = std::uint64_t{64} << 20;
  struct statfs fs {};
  if (path_[0] == '\0' || statfs(path_, &fs) != 0 || fs.f_blocks == 0) return true;
  const auto block = static_cast<std::uint64_t>(fs.f_bsize);
  const std::uint64_t reserve = std::min(largest_reserve, fs.f_blocks * block / 8 * 7);
  errno = ENOSPC;
  return fs.f_bavail * block >= reserve + bytes;
}

bool BackingFile::fill_by_path(std::uint64_t offset, std::uint64_t bytes) noexcept {
  const Uncancelled keep;
  const Descriptor file = open_again();
  if (!file) return refused(GrowthOperation::open);
  // Kernels before Linux 5.14 begin the call anew after each signal, so after a storm of signals
  // the thread gives up.
  constexpr int attempts = 100;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    if (fallocate(file.number(), 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0)
      return true;
    if (errno != EINTR) break;
  }
  return refused(GrowthOperation::allocate);
}

// Opens the file at path(), if it is still the ledger's own.
Descriptor BackingFile::open_again() const noexcept {
  Descriptor file = open_to_change(path_);
  struct stat status {};
  if (file &&
      (!status_of(file.number(), status) || status.st_dev != device_ || status.st_ino != inode_)) {
    file.reset();
    errno = ENOENT;
  }
  return file;
}

bool BackingFile::replace_by_memory(std::uint64_t offset, std::uint64_t bytes) noexcept {
  const ErrnoGuard guard;
  // A failure may leave a hole in the address range. The program may have another mapping there
  // later, so the hole is never touched.
  void* const start = mmap(base() + offset, bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (start == MAP_FAILED) return refused(GrowthOperation::map);
  madvise(start, bytes, MADV_DONTFORK);
  madvise(start, bytes, MADV_DONTDUMP);
  munlock(start, bytes);
  return true;
}

void BackingFile::remove() noexcept {
  const ErrnoGuard guard;
  if (!in_file()) return;
  struct stat status {};
  if (status_of(path_, status) && status.st_dev == device_ && status.st_ino == inode_) {
    unlink(path_);
  }
  path_[0] = '\0';
}

}  // namespace cuwarden::ledger
