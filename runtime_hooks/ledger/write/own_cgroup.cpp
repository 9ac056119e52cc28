// /proc/self/cgroup has the path in this process's cgroup namespace, but not the folder at which it
// is mounted. So the usual folders are tried, and the one that lists this process is right.
#include "runtime_hooks/ledger/write/own_cgroup.hpp"

#include <unistd.h>

#include <cstring>
#include <string_view>

#include "runtime_hooks/core/files/cgroup_memory.hpp"
#include "runtime_hooks/core/files/small_file.hpp"

namespace cuwarden::ledger {
namespace {

bool lists_this_process(const CgroupFolder& folder) noexcept {
  const Descriptor file = folder.open_file("cgroup.procs");
  if (!file) return false;
  const auto wanted = static_cast<std::uint64_t>(getpid());
  char text[4096];
  std::uint64_t pid = 0;
  bool found = false;
  for (ssize_t length = 0; !found && (length = file.read_some(text)) > 0;) {
    for (ssize_t i = 0; i < length && !found; ++i) {
      if (text[i] == '\n') {
        found = pid == wanted;
        pid = 0;
      } else {
        pid = pid * 10 + static_cast<std::uint64_t>(text[i] - '0');
      }
    }
  }
  return found;
}

// Returns false if the process is not listed in that folder, or if the kernel counts no memory for
// it.
bool note(OwnCgroup& cgroup, std::string_view mount, std::string_view path) noexcept {
  if (path == "/") path = {};
  if (mount.size() + path.size() >= sizeof cgroup.path) return false;
  mount.copy(cgroup.path, mount.size());
  path.copy(cgroup.path + mount.size(), path.size());
  cgroup.path[mount.size() + path.size()] = '\0';
  CgroupFolder folder(cgroup.path);
  if (!folder || !lists_this_process(folder)) return false;
  // In version 2 a cgroup may leave the counting to one above it.
  for (;;) {
    if (const auto kills = folder.oom_kills()) {
      cgroup.inode = folder.inode();
      cgroup.oom_kills = *kills;
      return true;
    }
    char* const slash = std::strrchr(cgroup.path, '/');
    if (slash == nullptr || slash < cgroup.path + mount.size() || !folder.go_up()) return false;
    *slash = '\0';
  }
}

bool has_memory(std::string_view controllers) noexcept {
  while (!controllers.empty()) {
    const std::size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == "memory") return true;
    if (comma == controllers.npos) break;
    controllers.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace

OwnCgroup own_cgroup() noexcept {
  OwnCgroup cgroup;
  char buffer[PATH_MAX + 4096];
  // A line is "4:memory:/path" or, for version 2, "0::/path". A controller belongs to one version
  // only.
  for (std::string_view text = read_small_file("/proc/self/cgroup", buffer);
       text.find('\n') != text.npos; text.remove_prefix(text.find('\n') + 1)) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    if (controllers.empty()) {
      if (note(cgroup, "/sys/fs/cgroup", path) || note(cgroup, "/sys/fs/cgroup/unified", path))
        return cgroup;
    } else if (has_memory(controllers)) {
      // In a container with version 1, the path is the host's, but the container's own folder
      // is mounted at the top.
      if (note(cgroup, "/sys/fs/cgroup/memory", path) || note(cgroup, "/sys/fs/cgroup/memory", "/"))
        return cgroup;
    }
  }
  cgroup.path[0] = '\0';
  return cgroup;
}

}  // namespace cuwarden::ledger
