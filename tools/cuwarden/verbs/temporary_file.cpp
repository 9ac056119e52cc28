#include "tools/cuwarden/verbs/temporary_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <set>
#include <sstream>
#include <string_view>

#include "runtime_hooks/core/files/open_file.hpp"

namespace cuwarden {
namespace {

constexpr std::string_view name_start = "cuwarden-run-";
// Age from which an unlocked file counts as left behind. A file is made first and locked
// afterwards, so a younger file may be that of another run.
constexpr time_t least_age_s = 60;

// Returns true if flock() does not collide with locks of byte ranges. On a network file system it
// locks all bytes of the file, which programs may want to lock for themselves.
bool has_own_locks(int descriptor) {
  struct statfs system {};
  constexpr decltype(system.f_type) cifs = 0xff534d42, smb2 = 0xfe534d42;
  return fstatfs(descriptor, &system) == 0 && system.f_type != NFS_SUPER_MAGIC &&
         system.f_type != SMB_SUPER_MAGIC && system.f_type != cifs && system.f_type != smb2;
}

// Removes the files that killed runs of this user have left in the folder.
void remove_left_files(const std::string& folder) {
  DIR* const opened = opendir(folder.c_str());
  if (opened == nullptr) return;
  while (const dirent* entry = readdir(opened)) {
    if (!std::string_view(entry->d_name).starts_with(name_start)) continue;
    const int file = openat(dirfd(opened), entry->d_name,
                            O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0) continue;
    struct stat status {};
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
        time(nullptr) - status.st_mtime >= least_age_s && has_own_locks(file) &&
        flock(file, LOCK_EX | LOCK_NB) == 0) {
      unlinkat(dirfd(opened), entry->d_name, 0);
    }
    close(file);
  }
  closedir(opened);
}

}  // namespace

TemporaryFile::TemporaryFile() {
  const char* const wanted = std::getenv("TMPDIR");
  const std::string folder = wanted != nullptr && *wanted == '/' ? wanted : "/tmp";
  remove_left_files(folder);
  path_ = folder + "/" + std::string(name_start) + "XXXXXX";
  descriptor_ = mkostemp(path_.data(), O_CLOEXEC);
  has_name_ = descriptor_ >= 0;
  if (!has_name_) {
    error_ = errno;
  } else if (has_own_locks(descriptor_)) {
    flock(descriptor_, LOCK_EX | LOCK_NB);
  }
}

TemporaryFile::~TemporaryFile() {
  remove_name();
  if (descriptor_ >= 0) close(descriptor_);
}

void TemporaryFile::remove_name() {
  if (has_name_) unlink(path_.c_str());
  has_name_ = false;
}

// Reads by the descriptor, because the path may lead to a pipe by now.
std::string TemporaryFile::content() const {
  std::string all;
  char part[4096];
  for (ssize_t count = 0;
       (count = pread(descriptor_, part, sizeof part, static_cast<off_t>(all.size()))) > 0;)
    all.append(part, static_cast<std::size_t>(count));
  return all;
}

std::vector<std::string> TemporaryFile::entries() const {
  std::vector<std::string> result;
  std::set<std::string> seen;
  std::istringstream file(content());
  for (std::string entry; std::getline(file, entry, '\0');) {
    if (entry.starts_with('/') && seen.insert(entry).second) result.push_back(entry);
  }
  return result;
}

bool TemporaryFile::has_entry(std::string_view wanted) const {
  std::istringstream file(content());
  for (std::string entry; std::getline(file, entry, '\0');)
    if (entry == wanted) return true;
  return false;
}

void add_entry(const char* path, std::string_view entry) {
  const Descriptor file = open_to_append(path, false);
  if (!file) return;
  const std::string line = std::string(entry) + '\0';
  // A write past the limit of file sizes would end this process by SIGXFSZ.
  rlimit limit{};
  struct stat status {};
  if (fstat(file.number(), &status) != 0 || getrlimit(RLIMIT_FSIZE, &limit) != 0 ||
      static_cast<rlim_t>(status.st_size) + line.size() > limit.rlim_cur)
    return;
  [[maybe_unused]] const ssize_t written = write(file.number(), line.data(), line.size());
}

}  // namespace cuwarden
