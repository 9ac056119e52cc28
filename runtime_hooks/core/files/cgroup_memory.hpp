// Reads the kernel's figures of a cgroup's memory, for both versions of cgroups. Nothing is
// allocated and no file stays open. https://docs.kernel.org/admin-guide/cgroup-v2.html
// (memory.events, memory.max, memory.peak) and cgroup-v1/memory.html (memory.oom_control and the
// others).
#pragma once

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "runtime_hooks/core/files/open_file.hpp"

namespace cuwarden {

// The folder below which all cgroup file systems are mounted.
inline constexpr std::string_view cgroup_mount = "/sys/fs/cgroup";

// Finds a decimal number in `text`, the contents of a cgroup's file. With a `key`, returns the
// number in the line "KEY NUMBER"; with an empty key, the number that makes up the first line.
// Null if there is no such line, or if it holds no number of at most 64 bits (such as "max").
inline std::optional<std::uint64_t> cgroup_number(std::string_view text,
                                                  std::string_view key) noexcept {
  while (!text.empty()) {
    const std::size_t end = std::min(text.size(), text.find('\n'));
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    if (!key.empty()) {
      if (!line.starts_with(key) || line.substr(key.size(), 1) != " ") continue;
      line.remove_prefix(key.size() + 1);
    }
    std::uint64_t value = 0;
    for (const char c : line) {
      if (c < '0' || c > '9' || __builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, static_cast<std::uint64_t>(c - '0'), &value))
        return std::nullopt;
    }
    return line.empty() ? std::nullopt : std::optional(value);
  }
  return std::nullopt;
}

// The open folder of a cgroup, or nothing. The destructor closes the folder.
class CgroupFolder {
 public:
  // Opens the folder of a cgroup at `path`, an absolute path. If the folder cannot be opened, or is
  // no cgroup's below /sys/fs/cgroup, the object converts to false. This is checked because the
  // path may come from an untrusted file.
  explicit CgroupFolder(const char* path) noexcept {
    if (std::strncmp(path, cgroup_mount.data(), cgroup_mount.size()) != 0) return;
    take(open_folder(AT_FDCWD, path, Links::refused));
  }
  // True if the folder of a cgroup is open.
  explicit operator bool() const noexcept { return static_cast<bool>(folder_); }
  // True if the open folder belongs to cgroup version 2, false for version 1. Has no meaning if no
  // folder is open.
  bool is_version_2() const noexcept { return version_2_; }

  // Returns the inode number of the open folder; 0 if no folder is open or the kernel does not say.
  // A later cgroup at an equal path has another inode number.
  std::uint64_t inode() const noexcept {
    struct stat status {};
    // glibc's fstat is newer than 2.28, so the system call is used directly.
    return syscall(SYS_fstat, folder_.number(), &status) == 0 ? status.st_ino : 0;
  }
  // Closes the cgroup's folder, and opens that of the cgroup above it instead. Returns false if
  // there is no cgroup above, or if its folder cannot be opened. After false, the object must not
  // be used any more: in most cases no folder is open.
  bool go_up() noexcept {
    const std::uint64_t here = inode();
    const Descriptor below = std::move(folder_);
    take(open_folder(below.number(), ".."));
    return folder_ && inode() != here;
  }

  // Opens the file `name` (no path) in the cgroup's folder for reading. Returns an empty
  // Descriptor, with errno set, on failure.
  Descriptor open_file(const char* name) const noexcept {
    return open_to_read(folder_.number(), name, Links::refused);
  }
  // Returns the number in the line "KEY NUMBER" of the file `file` in the cgroup's folder; with an
  // empty `key`, the number in the file's first line. Null if there is no such number or file.
  std::optional<std::uint64_t> number(const char* file, std::string_view key = {}) const noexcept {
    const Descriptor opened = open_file(file);
    if (!opened) return std::nullopt;
    char text[4096];  // Enough for each file of a cgroup that is read here.
    const ssize_t length = opened.read_some(text);
    return cgroup_number({text, length > 0 ? static_cast<std::size_t>(length) : 0}, key);
  }

  // Returns the number of this cgroup's processes that the kernel has killed so far for lack of
  // memory; null if unknown. In version 2, processes of the cgroups below it count, too. The memory
  // may have been lacking in one of these cgroups, in one above them, or in the whole machine.
  std::optional<std::uint64_t> oom_kills() const noexcept {
    return number(version_2_ ? "memory.events" : "memory.oom_control", "oom_kill");
  }

 private:
  // Makes `folder` the open folder if it is a cgroup's; otherwise closes it.
  void take(Descriptor folder) noexcept {
    if (!folder) return;
    struct statfs system {};
    const bool known = fstatfs(folder.number(), &system) == 0;
    version_2_ = known && system.f_type == CGROUP2_SUPER_MAGIC;
    if (version_2_ || (known && system.f_type == CGROUP_SUPER_MAGIC)) folder_ = std::move(folder);
  }

  Descriptor folder_;       // The cgroup's folder; empty: none is open.
  bool version_2_ = false;  // True if the folder belongs to cgroup version 2, false for version 1.
};

// Most cgroups in which a memory limit is looked for: a process's own cgroup, the one above it, and
// so on.
inline constexpr int deepest_cgroup = 64;
// A memory limit of a cgroup of this many bytes or more counts as no limit: cgroup version 1 shows
// "no limit" as a large number.
inline constexpr std::uint64_t no_cgroup_limit = std::uint64_t{1} << 62;

// The memory use of a cgroup, and the lowest memory limit that applies to its processes.
struct CgroupMemory {
  // Number of the cgroup's processes that the kernel has killed so far for lack of memory; null if
  // unknown.
  std::optional<std::uint64_t> oom_kills;
  // The lowest memory limit of the cgroup and of all cgroups above it; null if none of them has a
  // limit that can be read.
  std::optional<std::uint64_t> limit_bytes;
  // Most bytes that were ever in use at a time; null if unknown. They belong to the cgroup that has
  // the limit `limit_bytes`, or to the cgroup itself if there is no limit.
  std::optional<std::uint64_t> peak_bytes;
};

// Reads the memory use of the cgroup whose folder is `path`, and the lowest of its own memory limit
// and those of all cgroups above it. `inode`: inode number of the folder when the path became
// known; 0: unknown. Returns null if `inode` is 0, or if the folder cannot be opened or has another
// inode number: then the cgroup is gone, and a later one may have an equal path.
inline std::optional<CgroupMemory> read_cgroup_memory(const char* path,
                                                      std::uint64_t inode) noexcept {
  CgroupFolder folder(path);
  if (!folder || inode == 0 || folder.inode() != inode) return std::nullopt;
  CgroupMemory memory;
  memory.oom_kills = folder.oom_kills();
  const bool new_files = folder.is_version_2();
  const char* const limit_file = new_files ? "memory.max" : "memory.limit_in_bytes";
  const char* const peak_file = new_files ? "memory.peak" : "memory.max_usage_in_bytes";
  memory.peak_bytes = folder.number(peak_file);
  for (int level = 0; level < deepest_cgroup; ++level) {
    const auto limit = folder.number(limit_file);
    if (limit && *limit < no_cgroup_limit &&
        (!memory.limit_bytes || *limit < *memory.limit_bytes)) {
      memory.limit_bytes = limit;
      memory.peak_bytes = folder.number(peak_file);
    }
    if (!folder.go_up()) break;
  }
  return memory;
}

// The memory limit that a cgroup's processes will reach first. Among the limits of the cgroup and
// of the cgroups above it, this limit has the fewest bytes between use and limit.
struct CgroupRoom {
  // The limit in bytes; null if there is no limit, or none that can be read.
  std::optional<std::uint64_t> limit_bytes;
  // Bytes of memory in use in the cgroup that has this limit, or in the cgroup itself if there is
  // no limit; null if unknown. Includes the page cache.
  std::optional<std::uint64_t> used_bytes;
  // The part of `used_bytes` that is page cache, which the kernel gives up before it refuses
  // memory. 0 if there is no limit, or if unknown.
  std::uint64_t cache_bytes = 0;
};

// Returns the memory limit that the processes of a cgroup will reach first (CgroupRoom). The
// cgroup's folder is open in `folder`; the limits of all cgroups above it count, too. The function
// calls `folder.go_up()`, so `folder` must not be used afterwards. `Folder` is CgroupFolder, or in
// tests a type with equal functions, since tests cannot make a cgroup everywhere.
template <class Folder>
CgroupRoom tightest_cgroup(Folder& folder) noexcept {
  const bool new_files = folder.is_version_2();
  const char* const limit_file = new_files ? "memory.max" : "memory.limit_in_bytes";
  const char* const used_file = new_files ? "memory.current" : "memory.usage_in_bytes";
  CgroupRoom room{{}, folder.number(used_file), 0};
  std::uint64_t least_left = no_cgroup_limit;
  for (int level = 0; level < deepest_cgroup; ++level) {
    const auto limit = folder.number(limit_file);
    if (limit && *limit < no_cgroup_limit) {
      const auto used = folder.number(used_file);
      const std::uint64_t left = *limit - std::min(*limit, used.value_or(0));
      if (left < least_left) {
        least_left = left;
        const auto pages_of = [&](std::string_view key) {
          return folder.number("memory.stat", key).value_or(0);
        };
        room = {limit, used,
                new_files ? pages_of("inactive_file") + pages_of("active_file")
                          : pages_of("total_inactive_file") + pages_of("total_active_file")};
      }
    }
    if (!folder.go_up()) break;
  }
  return room;
}

// Returns the memory limit that the processes of a cgroup will reach first (CgroupRoom). `path`:
// the cgroup's folder; the limits of all cgroups above it count, too. `inode`: inode number of the
// folder when the path became known; 0: unknown. Returns null if `inode` is 0, or if the folder
// cannot be opened or has another inode number: then the cgroup is gone, and a later one may have
// an equal path.
inline std::optional<CgroupRoom> read_cgroup_room(const char* path, std::uint64_t inode) noexcept {
  CgroupFolder folder(path);
  if (!folder || inode == 0 || folder.inode() != inode) return std::nullopt;
  return tightest_cgroup(folder);
}

}  // namespace cuwarden
