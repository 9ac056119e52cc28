#include "reporters/files/given_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "reporters/files/file_status.hpp"
#include "reporters/words/error_text.hpp"
#include "reporters/words/quantities.hpp"
#include "runtime_hooks/core/files/open_file.hpp"

namespace cuwarden {
namespace {

bool is_own_descriptor(std::string_view path) {
  return path == "-" || path == "/dev/stdin" || path.starts_with("/dev/fd/") ||
         path.starts_with("/proc/self/fd/");
}

const char* wrong_type(mode_t mode, bool is_own) {
  if (S_ISREG(mode)) return nullptr;
  if (S_ISDIR(mode)) return "it is a folder";
  if (S_ISFIFO(mode)) return is_own ? nullptr : "it is a pipe with a name";
  if (S_ISSOCK(mode)) return is_own ? nullptr : "it is a socket";
  return is_own && S_ISCHR(mode) ? nullptr : "it is a device";
}

std::string too_large(std::size_t most_bytes) {
  return "it is larger than " + human_bytes(most_bytes);
}

// True if the text may be a JSON object. It may begin with a byte order mark.
bool begins_as_an_object(std::string_view content) {
  if (content.starts_with("\xef\xbb\xbf")) content.remove_prefix(3);
  const std::size_t first = content.find_first_not_of(" \t\r\n");
  return first != content.npos && content[first] == '{';
}

// Returns the reason why a file that begins so is no report; null if it may be one.
const char* why_no_report(std::string_view begin) {
  if (begin.empty()) return "the file is empty";
  if (begin.starts_with("# cuwarden baseline"))
    return "it is a baseline: name it by --baseline, beside a report";
  return begins_as_an_object(begin) ? nullptr : "not a cuwarden report (it is no JSON object)";
}

}  // namespace

std::string read_object_file(const std::string& path, std::size_t most_bytes,
                             std::string& content) {
  const bool is_own = is_own_descriptor(path);
  // Standard input is already open, and the command may wait for it. Another pipe or terminal
  // must not block the command.
  const Descriptor file(path == "-"
                            ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                            : open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat status {};
  if (!file || status_of(file.number(), status) != 0) return error_text(errno);
  if (const char* const wrong = wrong_type(status.st_mode, is_own)) return wrong;
  if (S_ISREG(status.st_mode) && static_cast<std::uint64_t>(status.st_size) > most_bytes)
    return too_large(most_bytes);
  char piece[64 * 1024];
  bool begun = false;
  for (;;) {
    const ssize_t count = file.read_some(piece);
    if (count < 0 && errno == EAGAIN) {
      pollfd input{file.number(), POLLIN, 0};
      if (poll(&input, 1, -1) < 0 && errno != EINTR) return error_text(errno);
      continue;
    }
    if (count < 0) return error_text(errno);
    if (count == 0) break;
    content.append(piece, static_cast<std::size_t>(count));
    if (content.size() > most_bytes) return too_large(most_bytes);
    // A pipe may deliver single bytes, so the beginning is checked once enough bytes are there.
    if (!begun && content.size() >= sizeof piece) {
      if (const char* const reason = why_no_report(content)) return reason;
      begun = true;
    }
  }
  const char* const reason = why_no_report(content);
  return reason == nullptr ? "" : reason;
}

}  // namespace cuwarden
