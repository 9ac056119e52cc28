// Functions that our copy of libbacktrace calls in place of libc. (Its symbols are renamed at build
// time.)
//
// libbacktrace wants to symbolise the process it runs in: besides the file it is given it would
// read every library that is loaded here, and give that file this process's own load base.
// A report is about files, perhaps of another process. So the loop over loaded objects shows it
// one object: the file it was given, at address 0. All addresses are then the file's own, for
// position-independent and fixed programs alike, and nothing else is read.
//
// libbacktrace's memory and its views of files all come from mmap, a few pages at a time while it
// reads. So mmap is where reading is stopped once it has taken too long (SymbolBudget).
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>

#include <cerrno>

#include "reporters/files/file_status.hpp"
#include "reporters/symbols/symbol_budget.hpp"
#include "runtime_hooks/core/files/open_file.hpp"

extern "C" {

// The build renames libbacktrace's calls to these names.
int cuwarden_backtrace_iterate(int (*visit)(struct dl_phdr_info*, size_t, void*), void* data) {
  dl_phdr_info info{};
  info.dlpi_name = "";  // the dynamic linker gives the program itself an empty name, too
  return visit(&info, sizeof info, data);
}

// A program names the file with its debug information. Its author may have put the path of a pipe
// or a terminal there. A file that cannot be read counts as missing.
int cuwarden_backtrace_open(const char* path, int) {
  const int descriptor = cuwarden::open_to_read(path).release();
  if (descriptor < 0) errno = ENOENT;
  return descriptor;
}

int cuwarden_backtrace_fstat(int descriptor, struct stat* result) {
  return cuwarden::status_of(descriptor, *result);
}

int cuwarden_backtrace_lstat(const char* path, struct stat* result) {
  return cuwarden::status_at(AT_FDCWD, path, *result, AT_SYMLINK_NOFOLLOW);
}

void* cuwarden_backtrace_mmap(void* address, size_t bytes, int protection, int flags,
                              int descriptor, off_t offset) {
  const bool is_memory = (flags & MAP_ANONYMOUS) != 0;
  if (!cuwarden::BoundReading::allows(bytes, is_memory)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  void* const start = mmap(address, bytes, protection, flags, descriptor, offset);
  if (start == MAP_FAILED && is_memory) cuwarden::BoundReading::was_refused();
  return start;
}
// The name of mmap in a libbacktrace that was built for large files.
void* cuwarden_backtrace_mmap64(void* address, size_t bytes, int protection, int flags,
                                int descriptor, off_t offset) {
  return cuwarden_backtrace_mmap(address, bytes, protection, flags, descriptor, offset);
}

}  // extern "C"
