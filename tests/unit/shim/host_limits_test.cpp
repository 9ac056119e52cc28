// The limits of the host's memory: read from made-up files, whose answer is known, and on this
// machine.
#include "shim/probes/host_limits.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/comes_about.hpp"
#include "tests/thread_state.hpp"
#include "tests/thread_time.hpp"

namespace cuwarden::shim {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t gib = std::uint64_t{1} << 30;

// A folder that is read instead of /proc, with files that a test puts there.
class MadeUpProc {
 public:
  MadeUpProc() {
    std::string name = (fs::temp_directory_path() / "host-limits-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    put("meminfo",
        "MemTotal:       24684092 kB\n"
        "MemAvailable:    1048576 kB\n"
        "SwapTotal:          4096 kB\n"
        "SwapFree:              0 kB\n"
        "CommitLimit:    12342044 kB\n"
        "Committed_AS:     100000 kB\n");
    put("sys/vm/overcommit_memory", "2\n");
    put("sys/vm/max_map_count", "65530\n");
    put("sys/vm/mmap_min_addr", "65536\n");
    put("thread-self/statm", "300 20 10 1 0 50 0\n");
    put("thread-self/maps", maps);
  }
  MadeUpProc(const MadeUpProc&) = delete;
  MadeUpProc& operator=(const MadeUpProc&) = delete;
  ~MadeUpProc() { fs::remove_all(folder_); }

  void put(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  void remove(const std::string& name) { fs::remove_all(folder_ / name); }
  // Replaces the file by a folder, which can be opened and not read.
  void make_unreadable(const std::string& name) {
    remove(name);
    fs::create_directories(folder_ / name);
  }
  HostLimits read() const { return read_host_limits(folder_.c_str()); }

  static constexpr char maps[] =
      "400000000000-400000001000 r-xp 00000000 fe:00 12     /usr/bin/a 5f-6f\n"
      "400000001000-700000000000 rw-p 00000000 00:00 0      [heap]\n"
      "700000000000-7ffffff00000 ---p 00000000 00:00 0 \n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";

 private:
  fs::path folder_;
};

TEST(HostLimits, the_limits_are_those_in_the_files) {
  const HostLimits limits = MadeUpProc().read();
  EXPECT_EQ(limits.ram_bytes, 24684092u * 1024ull);
  EXPECT_EQ(limits.ram_available_bytes, gib);
  EXPECT_EQ(limits.swap_free_bytes, 0u);
  EXPECT_EQ(limits.commit_limit_bytes, 12342044u * 1024ull);
  EXPECT_EQ(limits.committed_bytes, 100000u * 1024ull);
  EXPECT_EQ(limits.overcommit_mode, 2u);
  EXPECT_EQ(limits.address_space_bytes, 300u * 4096u);
  EXPECT_EQ(limits.max_mappings, 65530u);
  EXPECT_EQ(limits.mappings, 3u) << "[vsyscall] is none of the process's";
  EXPECT_EQ(limits.largest_gap_bytes, 0x4000'0000'0000u - 65536u) << "below the first";
}

TEST(HostLimits, without_files_only_the_limits_from_system_calls_are_known) {
  MadeUpProc proc;
  proc.remove("");
  const HostLimits limits = proc.read();
  for (const std::uint64_t field :
       {limits.ram_bytes, limits.ram_available_bytes, limits.swap_free_bytes,
        limits.commit_limit_bytes, limits.committed_bytes, limits.overcommit_mode,
        limits.address_space_bytes, limits.mappings, limits.max_mappings, limits.largest_gap_bytes})
    EXPECT_EQ(field, HostLimits::unknown);
  EXPECT_NE(limits.address_space_limit_bytes, HostLimits::unknown);
}

TEST(HostLimits, only_the_limits_of_a_missing_or_unreadable_file_are_unknown) {
  const HostLimits whole = MadeUpProc().read();
  const std::vector<std::pair<std::string, std::vector<std::uint64_t HostLimits::*>>> files = {
      {"meminfo",
       {&HostLimits::ram_bytes, &HostLimits::ram_available_bytes, &HostLimits::swap_free_bytes,
        &HostLimits::commit_limit_bytes, &HostLimits::committed_bytes}},
      {"sys/vm/overcommit_memory", {&HostLimits::overcommit_mode}},
      {"sys/vm/max_map_count", {&HostLimits::max_mappings}},
      {"thread-self/statm", {&HostLimits::address_space_bytes}},
      {"thread-self/maps", {&HostLimits::mappings, &HostLimits::largest_gap_bytes}},
      {"sys/vm/mmap_min_addr", {}}};
  for (const auto& [name, lost] : files) {
    for (const bool unreadable : {false, true}) {
      MadeUpProc proc;
      if (unreadable) {
        proc.make_unreadable(name);
      } else {
        proc.remove(name);
      }
      HostLimits limits = proc.read();
      for (const auto field : lost) {
        EXPECT_EQ(limits.*field, HostLimits::unknown) << name;
        limits.*field = whole.*field;
      }
      // The bytes that the cgroup uses change by themselves, so they are not compared.
      limits.cgroup_used_bytes = whole.cgroup_used_bytes;
      EXPECT_EQ(std::memcmp(&limits, &whole, sizeof whole), 0) << name;
    }
  }
}

TEST(HostLimits, the_limits_of_a_truncated_file_are_unknown_rather_than_too_small) {
  MadeUpProc proc;
  proc.put("meminfo", "MemTotal:       24684092 kB\nMemAvailable:    104");
  proc.put("sys/vm/max_map_count", "655");
  proc.put("thread-self/statm", "30");
  proc.put("thread-self/maps", std::string(MadeUpProc::maps).substr(0, 100));
  const HostLimits limits = proc.read();
  EXPECT_EQ(limits.ram_bytes, 24684092u * 1024ull);
  EXPECT_EQ(limits.ram_available_bytes, HostLimits::unknown);
  EXPECT_EQ(limits.max_mappings, HostLimits::unknown);
  EXPECT_EQ(limits.address_space_bytes, HostLimits::unknown);
  EXPECT_EQ(limits.mappings, HostLimits::unknown);
  EXPECT_EQ(limits.largest_gap_bytes, HostLimits::unknown);
}

TEST(HostLimits, limits_that_do_not_fit_or_are_no_numbers_are_unknown) {
  for (const char* number : {"18446744073709551615", "18446744073709551616", "18014398509481984",
                             "99999999999999999999999999", "-1", "", "many", "0x10"}) {
    MadeUpProc proc;
    proc.put("meminfo", "MemTotal: " + std::string(number) + " kB\n");
    proc.put("thread-self/statm", std::string(number) + "\n");
    EXPECT_EQ(proc.read().ram_bytes, HostLimits::unknown) << number;
    EXPECT_EQ(proc.read().address_space_bytes, HostLimits::unknown) << number;
  }
  MadeUpProc proc;
  proc.put("meminfo", "MemTotal: 12 MB\nMemTotalX: 7 kB\nSwapFree: 18014398509481982 kB\n");
  proc.put("sys/vm/max_map_count", "2147483647\n");
  EXPECT_EQ(proc.read().ram_bytes, HostLimits::unknown) << "another unit";
  EXPECT_EQ(proc.read().swap_free_bytes, 18014398509481982u * 1024u) << "the largest that fits";
  EXPECT_EQ(proc.read().max_mappings, 2147483647u);
}

TEST(HostLimits, a_line_that_is_split_between_two_reads_is_counted_once) {
  // The text is longer than one read, and its names shift the line that is split.
  std::string maps;
  std::uint64_t at = 0x10000;
  for (unsigned i = 0; i < 500; ++i, at += 0x3000) {
    char line[160];
    std::snprintf(line, sizeof line, "%08lx-%08lx rw-p 00000000 00:00 0 %s\n", at, at + 0x1000,
                  std::string(i % 61, 'x').c_str());
    maps += line;
  }
  char last[80];
  std::snprintf(last, sizeof last, "%012lx-7ffffffff000 rw-p 00000000 00:00 0 [stack]\n",
                at + 0x5000);
  MadeUpProc proc;
  proc.put("thread-self/maps", maps + last);
  EXPECT_EQ(proc.read().mappings, 501u);
  EXPECT_EQ(proc.read().largest_gap_bytes, 0x7000u);
}

TEST(HostLimits, the_gap_above_the_last_mapping_is_found_and_none_if_all_addresses_are_taken) {
  MadeUpProc proc;
  proc.put("thread-self/maps", "00010000-1000000000 rw-p 00000000 00:00 0 \n");
  EXPECT_EQ(proc.read().largest_gap_bytes, 0x7fff'ffff'f000u - 0x10'0000'0000u);
  proc.put("thread-self/maps", "00010000-7ffffffff000 rw-p 00000000 00:00 0 \n");
  EXPECT_EQ(proc.read().largest_gap_bytes, 0u);
  proc.put("thread-self/maps", "00000000-ffffffffffff000 rw-p 00000000 00:00 0 \n");
  EXPECT_EQ(proc.read().largest_gap_bytes, 0u) << "beyond what four-level page tables reach";
}

TEST(HostLimits, lines_that_no_kernel_writes_give_unknown_limits) {
  for (const char* text :
       {"", "\n", "7000-6000 rw-p\n", "7000-8000 rw-p\n6000-7000 rw-p\n", "7000 8000 rw-p\n",
        "-8000 rw-p\n", "7000-\n", "11112222333344445-2 rw-p\n", "hello\n"}) {
    MadeUpProc proc;
    proc.put("thread-self/maps", text);
    EXPECT_EQ(proc.read().mappings, HostLimits::unknown) << text;
    EXPECT_EQ(proc.read().largest_gap_bytes, HostLimits::unknown) << text;
  }
}

TEST(HostLimits, an_older_kernels_files_are_read_for_the_whole_process) {
  MadeUpProc proc;
  proc.remove("thread-self");
  proc.put("self/maps", MadeUpProc::maps);
  proc.put("self/statm", "301 1\n");
  EXPECT_EQ(proc.read().mappings, 3u);
  EXPECT_EQ(proc.read().address_space_bytes, 301u * 4096u);
}

TEST(HostLimits, a_list_of_mappings_without_end_is_given_up) {
  MadeUpProc proc;
  std::string many;
  for (std::uint64_t i = 0; i < most_mappings + 10; ++i) {
    char line[64];
    std::snprintf(line, sizeof line, "%lx-%lx r\n", 0x10000 + i * 0x1000, 0x11000 + i * 0x1000);
    many += line;
  }
  proc.put("thread-self/maps", many);
  EXPECT_EQ(proc.read().mappings, HostLimits::unknown);
}

// --- this machine

std::size_t lines_of_maps() {
  std::ifstream file("/proc/self/maps");
  std::size_t lines = 0;
  for (std::string line; std::getline(file, line);) lines += !line.ends_with("[vsyscall]");
  return lines;
}

TEST(HostLimits, the_limits_of_this_process_follow_its_mappings) {
  const HostLimits before = read_host_limits();
  if (before.mappings == HostLimits::unknown) GTEST_SKIP() << "no /proc here";
  EXPECT_NEAR(static_cast<double>(before.mappings), static_cast<double>(lines_of_maps()), 3);
  EXPECT_GT(before.ram_bytes, before.ram_available_bytes);
  void* const taken =
      mmap(nullptr, 64 * gib, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(taken, MAP_FAILED);
  const HostLimits after = read_host_limits();
  EXPECT_NEAR(static_cast<double>(after.address_space_bytes - before.address_space_bytes),
              static_cast<double>(64 * gib), 64 << 20);
  munmap(taken, 64 * gib);
}

// Tries mappings of the gap's size and of a larger one, so that the kernel confirms the largest
// gap.
TEST(HostLimits, a_mapping_fits_into_the_largest_gap_and_no_larger_one_does) {
  const auto fits = [](std::uint64_t bytes) {
    void* const made =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made != MAP_FAILED) munmap(made, bytes);
    return made != MAP_FAILED;
  };
  const std::uint64_t gap = read_host_limits().largest_gap_bytes;
  if (gap == HostLimits::unknown) GTEST_SKIP() << "no /proc here";
  // The kernel keeps a little address space free next to the stack and at address zero.
  EXPECT_TRUE(fits(gap - (std::uint64_t{8} << 20)));
  EXPECT_FALSE(fits(gap + 4096));
}

TEST(HostLimits, a_limit_of_the_address_space_is_read) {
  const pid_t child = fork();
  if (child == 0) {
    const struct rlimit limit { 500 * gib, RLIM_INFINITY };
    if (read_host_limits().address_space_limit_bytes != HostLimits::unlimited) _exit(1);
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    _exit(read_host_limits().address_space_limit_bytes == 500 * gib ? 0 : 3);
  }
  int status = -1;
  waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == 1) GTEST_SKIP() << "the address space is limited already";
  EXPECT_EQ(status, 0);
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

TEST(HostLimits, errno_and_the_descriptors_stay_as_they_were) {
  const std::size_t before = open_descriptors();
  errno = 4711;
  read_host_limits();
  EXPECT_EQ(errno, 4711);
  read_host_limits("/no/such/folder");
  EXPECT_EQ(errno, 4711);
  EXPECT_EQ(open_descriptors(), before);
}

TEST(HostLimits, the_limits_are_read_without_any_free_descriptor) {
  const pid_t child = fork();
  if (child == 0) {
    const struct rlimit none { 0, 0 };
    setrlimit(RLIMIT_NOFILE, &none);
    const HostLimits limits = read_host_limits();
    _exit(limits.ram_bytes == HostLimits::unknown && limits.mappings == HostLimits::unknown &&
                  limits.address_space_limit_bytes != HostLimits::unknown
              ? 0
              : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(HostLimits, the_limits_are_read_after_the_first_thread_has_ended) {
  const pid_t child = fork();
  if (child == 0) {
    std::thread([] {
      if (!comes_about([] { return thread_state(getpid()) == 'Z'; })) _exit(2);
      const HostLimits limits = read_host_limits();
      _exit(limits.mappings != HostLimits::unknown && limits.address_space_bytes != 0 ? 0 : 1);
    }).detach();
    syscall(SYS_exit, 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// Returns the nanoseconds that reading the limits computes while the process has `pages` mappings
// more. Returns none if it may not have so many.
std::optional<std::int64_t> cost_with_mappings(std::size_t pages) {
  // Neighbouring mappings have different rights, so that the kernel does not join them.
  auto* const start = static_cast<char*>(
      mmap(nullptr, pages * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (start == MAP_FAILED) return std::nullopt;
  for (std::size_t i = 0; i < pages; i += 2) mprotect(start + i * 4096, 4096, PROT_READ);
  HostLimits limits;
  const std::int64_t cost_ns = least_computed_ns(5, [&] { limits = read_host_limits(); });
  munmap(start, pages * 4096);
  std::printf("%zu mappings: %.1f ms\n", static_cast<std::size_t>(limits.mappings),
              static_cast<double>(cost_ns) / 1e6);
  return limits.mappings < pages ? std::nullopt : std::optional(cost_ns);
}

// The kernel writes the text during the reads, and does not tell how often it looks at a mapping.
// So times are compared: quadratic work would take 64 times as long for 8 times as many mappings.
TEST(HostLimits, the_time_for_many_mappings_grows_with_their_number_alone) {
  const auto few_ns = cost_with_mappings(8'000), many_ns = cost_with_mappings(64'000);
  if (!few_ns || !many_ns) GTEST_SKIP() << "vm.max_map_count is smaller here";
  EXPECT_LT(*many_ns, 20 * *few_ns);
}

}  // namespace
}  // namespace cuwarden::shim
