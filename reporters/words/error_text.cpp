#include "reporters/words/error_text.hpp"

#include <cerrno>

namespace cuwarden {

const char* error_text(int error) noexcept {
  switch (error) {
    case EACCES:
      return "permission denied";
    case EPERM:
      return "operation not permitted";
    case ENOENT:
      return "no such file or folder";
    case ENOTDIR:
      return "a part of the path is not a folder";
    case EISDIR:
      return "it is a folder";
    case EROFS:
      return "the file system is read-only";
    case ENOSPC:
      return "no space left on the file system";
    case EDQUOT:
      return "the disk quota is used up";
    case EFBIG:
      return "larger than the file size limit (ulimit -f)";
    case EMFILE:
    case ENFILE:
      return "too many open files";
    case ENAMETOOLONG:
      return "the name is too long";
    case ELOOP:
      return "a symbolic link is in the way";
    case EEXIST:
      return "the name is taken";
    case EBADF:
      return "it is closed";
    case EIO:
      return "input/output error";
    case ENOMEM:
      return "not enough memory";
    case ENXIO:
      return "it is no plain file";
    case ENOEXEC:
      return "not a program";
    default:
      return "the system refused";
  }
}

}  // namespace cuwarden
