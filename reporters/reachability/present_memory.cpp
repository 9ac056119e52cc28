#include "reporters/reachability/present_memory.hpp"

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>

#include "runtime_hooks/core/files/small_file.hpp"

namespace cuwarden::reachability {

namespace {

// Bits of an entry of /proc/PID/pagemap:
// https://docs.kernel.org/admin-guide/mm/pagemap.html
constexpr std::uint64_t page_is_present = std::uint64_t{1} << 63;
constexpr std::uint64_t page_is_in_swap = std::uint64_t{1} << 62;
constexpr std::uint64_t page_is_shared = std::uint64_t{1} << 61;

constexpr std::size_t pages_at_once = 16'384;

// The kernel's struct pm_scan_arg, with its names in other words, and its categories of pages:
// https://docs.kernel.org/admin-guide/mm/pagemap.html. Debian 12's headers are older than it.
struct ScanRequest {
  std::uint64_t bytes, flags, start, end, walked_to, regions, most_regions, most_pages;
  std::uint64_t inverted, all_of, any_of, returned;
};
constexpr unsigned long scan_pages = _IOWR('f', 16, ScanRequest);
constexpr std::uint64_t category_file = 1u << 2, category_present = 1u << 3;
constexpr std::uint64_t category_swapped = 1u << 4, category_zero = 1u << 5;

Descriptor open_of_process(int pid, const char* file) {
  const std::string process = pid == 0 ? "self" : std::to_string(pid);
  return open_to_read(("/proc/" + process + "/" + file).c_str());
}

}  // namespace

PresentMemory::PresentMemory(int pid, FunctionRef<bool()> may_go_on)
    : pid_(pid == 0 ? getpid() : pid),
      may_go_on_(may_go_on),
      pages_(open_of_process(pid, "pagemap")),
      memory_(open_of_process(pid, "mem")),
      entries_(pages_at_once),
      uses_swap_(uses_swap()) {}

bool PresentMemory::uses_swap() const {
  char text[4096];
  const std::string path = "/proc/" + std::to_string(pid_) + "/status";
  std::string_view status = read_small_file(path.c_str(), text);
  constexpr std::string_view name = "VmSwap:";
  const std::size_t at = status.find(name);
  if (at == status.npos) return true;
  status.remove_prefix(at + name.size());
  return take_number(status).value_or(1) != 0;
}

bool PresentMemory::each_present(Range range, bool only_own, FunctionRef<void(Range)> visit) {
  if (scans_) {
    const bool is_whole = scan_present(range, only_own, visit, scans_);
    if (scans_) return is_whole;
  }
  return list_present(range, only_own, visit);
}

bool PresentMemory::scan_present(Range range, bool only_own, const FunctionRef<void(Range)>& visit,
                                 bool& is_supported) {
  struct Region {
    std::uint64_t start, end, categories;
  };
  std::array<Region, 256> regions;
  ScanRequest request{};
  request.bytes = sizeof request;
  request.start = range.start / bytes_of_page * bytes_of_page;
  request.end = (range.end + bytes_of_page - 1) / bytes_of_page * bytes_of_page;
  request.regions = reinterpret_cast<std::uint64_t>(regions.data());
  request.most_regions = regions.size();
  request.any_of = category_present | category_swapped;
  request.returned = category_present | category_swapped | category_file | category_zero;
  while (request.start < request.end) {
    const int count = ioctl(pages_.number(), scan_pages, &request);
    if (count < 0) {
      if (request.start == range.start / bytes_of_page * bytes_of_page) is_supported = false;
      return false;
    }
    for (const Region& region : std::span(regions).first(static_cast<std::size_t>(count))) {
      if ((region.categories & category_swapped) != 0) has_swapped_pages_ |= uses_swap_;
      const bool is_wanted = (region.categories & category_present) != 0 &&
                             (region.categories & category_zero) == 0 &&
                             !(only_own && (region.categories & category_file) != 0);
      if (is_wanted) visit({std::max(region.start, range.start), std::min(region.end, range.end)});
    }
    if (request.walked_to <= request.start) break;
    request.start = request.walked_to;
    if (!may_go_on_()) return false;
  }
  return true;
}

bool PresentMemory::list_present(Range range, bool only_own,
                                 const FunctionRef<void(Range)>& visit) {
  std::uint64_t page = range.start / bytes_of_page;
  const std::uint64_t end = (range.end + bytes_of_page - 1) / bytes_of_page;
  while (page < end) {
    const std::size_t wanted = std::min<std::uint64_t>(end - page, pages_at_once);
    const ssize_t got = pread(pages_.number(), entries_.data(), wanted * sizeof(std::uint64_t),
                              static_cast<off_t>(page * sizeof(std::uint64_t)));
    if (got < static_cast<ssize_t>(sizeof(std::uint64_t))) return false;
    const std::size_t count = static_cast<std::size_t>(got) / sizeof(std::uint64_t);
    for (std::size_t i = 0; i < count;) {
      const auto is_wanted = [&](std::uint64_t entry) {
        return (entry & page_is_present) != 0 && !(only_own && (entry & page_is_shared) != 0);
      };
      if ((entries_[i] & page_is_in_swap) != 0) has_swapped_pages_ |= uses_swap_;
      std::size_t j = i;
      while (j < count && is_wanted(entries_[j])) ++j;
      if (j > i)
        visit({std::max((page + i) * bytes_of_page, range.start),
               std::min((page + j) * bytes_of_page, range.end)});
      i = std::max(i + 1, j);
    }
    page += count;
    if (!may_go_on_()) return false;
  }
  return true;
}

std::size_t PresentMemory::read(std::uint64_t start, std::span<std::uint64_t> words) const {
  const iovec here{words.data(), words.size_bytes()};
  const iovec there{reinterpret_cast<void*>(start), words.size_bytes()};
  ssize_t got = syscall(SYS_process_vm_readv, pid_, &here, 1, &there, 1, 0);
  bool is_unmapped = got < 0 && errno == EFAULT;
  // A sandbox may forbid the call, and still allow to read the file.
  if (got < 0 && !is_unmapped && memory_) {
    got = pread(memory_.number(), words.data(), words.size_bytes(), static_cast<off_t>(start));
    is_unmapped = got < 0 && errno == EIO;
  }
  if (got < 0 && !is_unmapped) was_refused_ = true;
  return got < 0 ? 0 : static_cast<std::size_t>(got) / sizeof(std::uint64_t);
}

std::size_t PresentMemory::read_present(std::uint64_t start, std::span<std::uint64_t> words) {
  const Range wanted{start, start + words.size_bytes()};
  std::uint64_t present = 0;
  if (wanted.end <= wanted.start ||
      !each_present(wanted, false, [&](Range run) { present += run.bytes(); }) ||
      present != wanted.bytes())
    return 0;
  return read(start, words);
}

}  // namespace cuwarden::reachability
