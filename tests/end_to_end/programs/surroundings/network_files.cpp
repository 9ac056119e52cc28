// Preloaded: files behave as on some network file systems. With NETWORK_FILES=no_mapping they
// cannot be mapped shared (as on 9p without a cache, or FUSE with direct I/O); with
// NETWORK_FILES=nfs they say that they lie on NFS. A memfd, which has no name anywhere, stays what
// it is.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace {

bool behaves_as(const char* kind) {
  const char* wanted = std::getenv("NETWORK_FILES");
  return wanted != nullptr && std::strcmp(wanted, kind) == 0;
}

void* map(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  struct stat status {};
  if ((flags & MAP_TYPE) == MAP_SHARED && file >= 0 && behaves_as("no_mapping") &&
      fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink > 0) {
    errno = ENODEV;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}

template <class Status>
int status_of(const char* path, Status* status) {
  const long result = syscall(SYS_statfs, path, status);
  constexpr long nfs = 0x6969;
  if (result == 0 && behaves_as("nfs")) status->f_type = nfs;
  return static_cast<int>(result);
}

}  // namespace

extern "C" {

void* mmap(void* address, size_t bytes, int protection, int flags, int file,
           off_t offset) noexcept {
  return map(address, bytes, protection, flags, file, offset);
}
void* mmap64(void* address, size_t bytes, int protection, int flags, int file,
             off_t offset) noexcept {
  return map(address, bytes, protection, flags, file, offset);
}

int statfs(const char* path, struct statfs* status) noexcept { return status_of(path, status); }
int statfs64(const char* path, struct statfs64* status) noexcept { return status_of(path, status); }
}
