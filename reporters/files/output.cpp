#include "reporters/files/output.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "reporters/files/file_status.hpp"

namespace cuwarden {

bool wait_for_room(int descriptor) noexcept {
  pollfd room{descriptor, POLLOUT, 0};
  return poll(&room, 1, -1) > 0 || errno == EINTR;
}

void Output::write(std::string_view text) noexcept {
  while (!text.empty() && error_ == 0) {
    const std::size_t part = std::min(text.size(), sizeof(buffer_) - used_);
    std::memcpy(buffer_ + used_, text.data(), part);
    used_ += part;
    text.remove_prefix(part);
    if (used_ == sizeof(buffer_)) flush();
  }
}

int Output::finish() noexcept {
  if (error_ == 0) flush();
  return error_;
}

Output::Output(int descriptor) noexcept : descriptor_(descriptor) {
  struct stat status {};
  if (status_of(descriptor, status) != 0) return;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  is_file_ = S_ISREG(status.st_mode);
}

// Returns false if the descriptor is another file's by now: another thread may have closed all
// descriptors (closefrom), and opened a file that got the same number.
bool Output::is_same_file() const noexcept {
  struct stat status {};
  return inode_ == 0 || (status_of(descriptor_, status) == 0 && status.st_dev == device_ &&
                         status.st_ino == inode_);
}

void Output::flush() noexcept {
  if (!is_same_file()) {
    error_ = EBADF;
    return;
  }
  // The limit of file sizes does not hold for pipes and terminals.
  rlimit limit{};
  if (is_file_ && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      written_ + used_ > limit.rlim_cur) {
    error_ = EFBIG;
    return;
  }
  std::size_t done = 0;
  while (done < used_) {
    const ssize_t count = ::write(descriptor_, buffer_ + done, used_ - done);
    if (count < 0 && (errno == EINTR || (errno == EAGAIN && wait_for_room(descriptor_)))) continue;
    if (count <= 0) {
      error_ = count == 0 ? EIO : errno;
      return;
    }
    done += static_cast<std::size_t>(count);
  }
  written_ += used_;
  used_ = 0;
}

}  // namespace cuwarden
