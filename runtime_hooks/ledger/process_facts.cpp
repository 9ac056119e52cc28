// Times are counted from the process's start, which the kernel gives in ticks since boot: exact to
// 10 ms. Where /proc has no answer (a sandbox), the ledger's own start takes its place.
#include "runtime_hooks/ledger/process_facts.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "runtime_hooks/core/boot_id.hpp"
#include "runtime_hooks/core/mapping.hpp"
#include "runtime_hooks/core/small_file.hpp"
#include "runtime_hooks/ledger/own_cgroup.hpp"

namespace cuwarden::ledger {
namespace {

constexpr std::uint64_t ns_per_second = 1'000'000'000;

std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * ns_per_second +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// Field 22 of /proc/self/stat; the second one, the program's name, may hold anything.
std::uint64_t start_ticks() {
  char text[1024];
  text[read_small_file("/proc/self/stat", std::span(text).first<sizeof text - 1>()).size()] = '\0';
  const char* at = std::strrchr(text, ')');
  for (int field = 2; at != nullptr && field < 22; ++field) {
    at = std::strchr(at, ' ');
    if (at != nullptr) ++at;
  }
  return at == nullptr ? 0 : std::strtoull(at, nullptr, 10);
}

// "pid:[4026531836]"
std::uint32_t pid_namespace() {
  char text[64] = "";
  if (readlink("/proc/self/ns/pid", text, sizeof text - 1) <= 0) return 0;
  const char* number = std::strchr(text, '[');
  return number == nullptr ? 0 : static_cast<std::uint32_t>(std::strtoul(number + 1, nullptr, 10));
}

// How long ago the process started; 0 where that is not known.
std::uint64_t age_ns(std::uint64_t ticks) {
  const long per_second = sysconf(_SC_CLK_TCK);
  if (ticks == 0 || per_second <= 0) return 0;
  const std::uint64_t started = ticks * (ns_per_second / static_cast<std::uint64_t>(per_second));
  const std::uint64_t now = clock_ns(CLOCK_BOOTTIME);
  return now > started && now - started < clock_ns(CLOCK_MONOTONIC) ? now - started : 0;
}

}  // namespace

void record_process(Storage& storage) noexcept {
  const ErrnoGuard guard;
  Process& process = storage.header().process;
  process.pid = static_cast<std::uint32_t>(getpid());
  process.parent = static_cast<std::uint32_t>(getppid());
  process.start_ticks = start_ticks();
  process.pid_namespace = pid_namespace();
  process.lock_held = storage.file().is_locked() ? 1 : 0;
  process.file_device = storage.file().device();
  process.file_inode = storage.file().inode();
  const std::uint64_t age = age_ns(process.start_ticks);
  process.start_realtime_ns = static_cast<std::int64_t>(clock_ns(CLOCK_REALTIME) - age);
  process.start_monotonic_ns = clock_ns(CLOCK_MONOTONIC) - age;

  const std::array<std::uint8_t, 16> boot = read_boot_id();
  std::memcpy(process.boot_id, boot.data(), boot.size());
  const OwnCgroup cgroup = own_cgroup();
  process.memory_cgroup = storage.store(cgroup.path);
  process.memory_cgroup_inode = cgroup.inode;
  process.memory_cgroup_oom_kills = cgroup.oom_kills;
  utsname system{};
  if (uname(&system) == 0) process.host = storage.store(system.nodename);
  char program[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program);
  if (length > 0) process.program = storage.store({program, static_cast<std::size_t>(length)});
  const Mapping arguments = Mapping::anonymous(32 << 10);
  if (arguments) {
    process.command_line = storage.store(read_small_file(
        "/proc/self/cmdline", {static_cast<char*>(arguments.data()), arguments.size()}));
  }
}

LedgerName ledger_name() noexcept {
  const ErrnoGuard guard;
  utsname system{};
  if (uname(&system) != 0 || system.nodename[0] == '\0') std::strcpy(system.nodename, "localhost");
  for (char* c = system.nodename; *c != '\0'; ++c) {
    if (*c == '/' || static_cast<unsigned char>(*c) <= ' ') *c = '_';
  }
  LedgerName name{};
  std::snprintf(name.text, sizeof name.text, "cuwarden-ledger-%s-%llu-%d", system.nodename,
                static_cast<unsigned long long>(clock_ns(CLOCK_REALTIME) - age_ns(start_ticks())),
                static_cast<int>(getpid()));
  return name;
}

}  // namespace cuwarden::ledger
