// Limits of the host's memory. They are read in the thread whose request failed, perhaps for lack
// of the very memory that is measured. So nothing is allocated, and each file is opened by itself.
#include "shim/probes/host_limits.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/files/cgroup_memory.hpp"
#include "runtime_hooks/core/files/meminfo.hpp"
#include "runtime_hooks/core/files/small_file.hpp"
#include "runtime_hooks/core/memory/mapping.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "runtime_hooks/ledger/write/own_cgroup.hpp"

namespace cuwarden::shim {
namespace {

// End of a process's addresses with four-level page tables. The kernel gives out higher addresses
// only if the caller names one.
constexpr std::uint64_t user_end = 0x7fff'ffff'f000;
constexpr std::uint64_t usual_lowest = 65536;  // vm.mmap_min_addr, if it cannot be read

// Adds up the mappings of /proc/self/maps, whose text comes in parts that may be cut anywhere.
class MappingSum {
 public:
  explicit MappingSum(std::uint64_t lowest) noexcept : free_from_(lowest) {}

  // Returns false at the first byte that no kernel writes there.
  bool add(std::string_view text) noexcept {
    while (!text.empty()) {
      if (part_ == Part::rest) {
        const std::size_t end = text.find('\n');
        if (end == text.npos) return true;
        text.remove_prefix(end + 1);
        part_ = Part::start;
        continue;
      }
      const char c = text.front();
      text.remove_prefix(1);
      const unsigned digit = c >= '0' && c <= '9'   ? static_cast<unsigned>(c - '0')
                             : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a') + 10
                                                    : 16;
      if (digit < 16) {
        if (number_ >> 60 != 0) return false;
        number_ = number_ << 4 | digit;
        ++digits_;
      } else if (digits_ == 0 || c != (part_ == Part::start ? '-' : ' ') || !take()) {
        return false;
      }
    }
    return true;
  }
  // Returns true if the text so far consists of whole lines, and of one at least.
  bool whole() const noexcept { return count_ > 0 && part_ == Part::start && digits_ == 0; }
  std::uint64_t count() const noexcept { return count_; }
  std::uint64_t largest_gap() const noexcept {
    return std::max(largest_, user_end - std::min(user_end, free_from_));
  }

 private:
  enum class Part { start, end, rest };

  bool take() noexcept {
    if (part_ == Part::start) {
      start_ = number_;
      part_ = Part::end;
    } else {
      if (number_ <= start_ || start_ < last_end_) return false;
      last_end_ = number_;
      part_ = Part::rest;
      // The mapping [vsyscall] is the kernel's and does not count.
      if (start_ >> 63 == 0) {
        ++count_;
        const std::uint64_t gap_end = std::min(start_, user_end);
        if (gap_end > free_from_) largest_ = std::max(largest_, gap_end - free_from_);
        free_from_ = std::max(free_from_, last_end_);
      }
    }
    number_ = 0;
    digits_ = 0;
    return true;
  }

  Part part_ = Part::start;
  std::uint64_t number_ = 0, start_ = 0, last_end_ = 0, free_from_, largest_ = 0, count_ = 0;
  unsigned digits_ = 0;
};

// After the process's first thread has ended, "self" shows nothing. "thread-self" shows what all
// threads share just as well, but exists only since Linux 3.17.
class ProcFiles {
 public:
  explicit ProcFiles(const char* proc) noexcept : folder_(open_folder(AT_FDCWD, proc)) {}

  std::string_view read(const char* path, std::span<char> into) const noexcept {
    return folder_ ? read_small_file(folder_.number(), path, into) : std::string_view{};
  }
  // Returns the number in a file that has one number.
  std::uint64_t number(const char* path) const noexcept {
    char buffer[64];
    std::string_view text = read(path, buffer);
    return take_number(text).value_or(HostLimits::unknown);
  }
  // Returns null if the file cannot be read to its end.
  std::optional<MappingSum> mappings(std::uint64_t lowest) const noexcept {
    for (const char* path : {"thread-self/maps", "self/maps"}) {
      const Descriptor file = folder_ ? open_to_read(folder_.number(), path) : Descriptor();
      MappingSum sum(lowest);
      char buffer[4096];  // the kernel gives no more bytes in one read
      ssize_t got = file ? 1 : -1;
      while (got > 0 && sum.count() <= most_mappings) {
        got = file.read_some(buffer);
        if (got > 0 && !sum.add({buffer, static_cast<std::size_t>(got)})) return std::nullopt;
      }
      if (got == 0 && sum.whole()) return sum;
    }
    return std::nullopt;
  }

 private:
  const Descriptor folder_;
};

void read_machine(const ProcFiles& files, HostLimits& limits) noexcept {
  char buffer[2048];  // All lines that are searched for are in the first half.
  const std::string_view text = files.read("meminfo", buffer);
  const auto bytes_of = [&](std::string_view key) {
    return meminfo_bytes(text, key).value_or(HostLimits::unknown);
  };
  limits.ram_bytes = bytes_of("MemTotal");
  limits.ram_available_bytes = bytes_of("MemAvailable");
  limits.swap_free_bytes = bytes_of("SwapFree");
  limits.commit_limit_bytes = bytes_of("CommitLimit");
  limits.committed_bytes = bytes_of("Committed_AS");
  limits.overcommit_mode = files.number("sys/vm/overcommit_memory");
}

void read_address_space(const ProcFiles& files, HostLimits& limits) noexcept {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_AS, &limit) == 0)
    limits.address_space_limit_bytes =
        limit.rlim_cur == RLIM_INFINITY ? HostLimits::unlimited : limit.rlim_cur;
  std::uint64_t pages = files.number("thread-self/statm");
  if (pages == HostLimits::unknown) pages = files.number("self/statm");
  if (pages <= HostLimits::unlimited / page_bytes) limits.address_space_bytes = pages * page_bytes;
  limits.max_mappings = files.number("sys/vm/max_map_count");
  const std::uint64_t lowest = files.number("sys/vm/mmap_min_addr");
  if (const auto sum = files.mappings(lowest < user_end ? lowest : usual_lowest)) {
    limits.mappings = sum->count();
    limits.largest_gap_bytes = sum->largest_gap();
  }
}

void read_cgroup(HostLimits& limits) noexcept {
  const ledger::OwnCgroup cgroup = ledger::own_cgroup();
  if (cgroup.path[0] == '\0') return;
  if (const auto room = read_cgroup_room(cgroup.path, cgroup.inode)) {
    limits.cgroup_limit_bytes = room->limit_bytes.value_or(HostLimits::unlimited);
    limits.cgroup_used_bytes = room->used_bytes.value_or(HostLimits::unknown);
    limits.cgroup_cache_bytes = room->cache_bytes;
  }
}

}  // namespace

HostLimits read_host_limits() noexcept { return read_host_limits("/proc"); }

HostLimits read_host_memory() noexcept {
  const ErrnoGuard guard;
  const Uncancelled keep;
  HostLimits limits;
  read_machine(ProcFiles("/proc"), limits);
  read_cgroup(limits);
  return limits;
}

// The kernel drops the page cache before it refuses memory, so the cache counts as available. Some
// of the cgroup's cache may be in use, so a quarter of it does not count.
std::uint64_t host_memory_left() noexcept {
  const HostLimits limits = read_host_memory();
  std::uint64_t room = UINT64_MAX;
  if (limits.ram_available_bytes != HostLimits::unknown) room = limits.ram_available_bytes;
  if (limits.cgroup_limit_bytes != HostLimits::unknown &&
      limits.cgroup_limit_bytes != HostLimits::unlimited &&
      limits.cgroup_used_bytes != HostLimits::unknown) {
    const std::uint64_t cache = limits.cgroup_cache_bytes / 4 * 3;
    const std::uint64_t used = limits.cgroup_used_bytes - std::min(limits.cgroup_used_bytes, cache);
    room = std::min(room, limits.cgroup_limit_bytes - std::min(limits.cgroup_limit_bytes, used));
  }
  return room;
}

HostLimits read_host_limits(const char* proc) noexcept {
  const ErrnoGuard guard;
  const Uncancelled keep;
  HostLimits limits;
  const ProcFiles files(proc);
  read_machine(files, limits);
  read_address_space(files, limits);
  read_cgroup(limits);
  return limits;
}

}  // namespace cuwarden::shim
