// Preloaded beside the shim: files behave as on some network file systems. With
// NETWORK_FILES=no_mapping they cannot be mapped shared (as on 9p without a cache, or FUSE with
// direct I/O); with NETWORK_FILES=nfs they say that they lie on NFS. A memfd, which has no name
// anywhere, stays what it is.
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "../replaced_imports.hpp"

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

int status_of(const char* path, struct statfs* status) {
  const long result = syscall(SYS_statfs, path, status);
  constexpr long nfs = 0x6969;
  if (result == 0 && behaves_as("nfs")) status->f_type = nfs;
  return static_cast<int>(result);
}

[[gnu::constructor]] void answer_the_shim() {
  replace_import_of_shim("mmap64", reinterpret_cast<void*>(map));
  replace_import_of_shim("statfs64", reinterpret_cast<void*>(status_of));
}

}  // namespace
