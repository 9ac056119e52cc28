#include "reporters/reports/free_name.hpp"

#include <fcntl.h>
#include <stdio.h>  // renameat2
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "reporters/files/file_name_limits.hpp"
#include "reporters/files/file_status.hpp"
#include "runtime_hooks/core/files/open_file.hpp"

namespace cuwarden {
namespace {

constexpr unsigned most_names = 100'000;  // numbers that are tried before the ending of the name

// The possible names of a report in its folder, which is open as `folder`.
struct Names {
  int folder;
  std::string base;
  std::size_t most_bytes;  // longest name, in bytes

  std::string with(unsigned number) const {
    return fitting_name(numbered_name(base, number), most_bytes);
  }
  bool is_taken(unsigned number) const {
    struct stat status {};
    return status_at(folder, with(number).c_str(), status, AT_SYMLINK_NOFOLLOW) == 0 ||
           errno != ENOENT;
  }
  // Returns a number above `taken` whose name was free a moment ago. Among thousands of reports
  // of one name this takes a few dozen looks, since the lowest numbers are taken first.
  unsigned free_after(unsigned taken) const {
    unsigned step = 1;
    while (taken + step < most_names && is_taken(taken + step)) {
      taken += step;
      step *= 2;
    }
    while (step > 1) {
      step /= 2;
      if (taken + step < most_names && is_taken(taken + step)) taken += step;
    }
    return taken + 1;
  }
};

// Renames `from` to `to` unless the name `to` is taken. Returns 0 or an errno; EEXIST: it is taken.
int rename_without_replacing(int folder, const char* from, const char* to) {
  if (renameat2(folder, from, folder, to, RENAME_NOREPLACE) == 0) return 0;
  // A file system that cannot do that (such as NFS) answers EINVAL or EOPNOTSUPP. A seccomp
  // filter that does not know the call answers EPERM or ENOSYS.
  const auto is_not_offered = [](int error) {
    return error == EINVAL || error == EOPNOTSUPP || error == EPERM || error == ENOSYS;
  };
  if (!is_not_offered(errno)) return errno;
  // A link never replaces a file, just as the call above.
  if (linkat(folder, from, folder, to, 0) == 0) {
    unlinkat(folder, from, 0);
    return 0;
  }
  if (!is_not_offered(errno) && errno != EMLINK) return errno;
  // The file system has no links. An empty file takes the name, and is then replaced.
  const Descriptor taken = make_file(folder, to, O_WRONLY);
  if (!taken) return errno;
  if (renameat(folder, from, folder, to) == 0) return 0;
  const int error = errno;
  unlinkat(folder, to, 0);
  return error;
}

}  // namespace

FreeName rename_to_free_name(int folder, const char* from, const std::string& wanted) {
  Names names{folder, wanted, name_limit(folder)};
  constexpr unsigned one_by_one = 16;  // numbers tried before the free ones are searched for
  // Processes that end together find one free number; each failure spreads them further.
  constexpr unsigned widest_spread = 4096;
  const auto pid = static_cast<unsigned>(getpid());
  unsigned number = 0, spread = 1;
  int error = 0;
  do {
    error = rename_without_replacing(folder, from, names.with(number).c_str());
    if (error == ENAMETOOLONG && names.most_bytes > shortest_name_limit) {
      // Some file systems accept only shorter names than they state.
      names.most_bytes = shortest_name_limit;
      error = EEXIST;
    } else if (error == EEXIST && number < one_by_one) {
      ++number;
    } else if (error == EEXIST) {
      number = names.free_after(number) + pid % spread;
      spread = std::min(spread * 2, widest_spread);
    }
  } while (error == EEXIST && number < most_names);
  return {error, number, names.with(number)};
}

}  // namespace cuwarden
