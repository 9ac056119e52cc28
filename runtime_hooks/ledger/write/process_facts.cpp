// Times are counted from the process's start, which the kernel gives in ticks since boot, exact to
// 10 ms. If /proc does not tell it (in a sandbox), the start of the ledger is used instead.
#include "runtime_hooks/ledger/write/process_facts.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/files/boot_id.hpp"
#include "runtime_hooks/core/files/proc_stat.hpp"
#include "runtime_hooks/core/files/small_file.hpp"
#include "runtime_hooks/core/memory/mapping.hpp"
#include "runtime_hooks/ledger/write/own_cgroup.hpp"
#include "runtime_hooks/ledger/write/proc_folder.hpp"

namespace cuwarden::ledger {
namespace {

// "pid:[4026531836]"
std::uint32_t pid_namespace(const ProcFolder& process) {
  char text[64] = "";
  if (readlink(process.file("ns/pid").text, text, sizeof text - 1) <= 0) return 0;
  const char* number = std::strchr(text, '[');
  return number == nullptr ? 0 : static_cast<std::uint32_t>(std::strtoul(number + 1, nullptr, 10));
}

}  // namespace

void record_process(Storage& storage, std::int32_t pid) noexcept {
  const ErrnoGuard guard;
  const ProcFolder folder(pid);
  char text[1024];
  const ProcStat stat = proc_stat_in(read_small_file(folder.file("stat").text, text));
  Process& process = storage.header().process;
  process.pid = static_cast<std::uint32_t>(folder.pid());
  process.parent = folder.is_caller() ? static_cast<std::uint32_t>(getppid()) : stat.parent;
  process.start_ticks = stat.start_ticks;
  process.pid_namespace = pid_namespace(folder);
  process.lock_held = storage.is_locked() ? 1 : 0;
  process.file_device = storage.device();
  process.file_inode = storage.inode();
  const std::uint64_t age = age_ns(process.start_ticks);
  process.start_realtime_ns = static_cast<std::int64_t>(time_ns_of(CLOCK_REALTIME) - age);
  process.start_monotonic_ns = time_ns_of(CLOCK_MONOTONIC) - age;

  const std::array<std::uint8_t, 16> boot = read_boot_id();
  std::memcpy(process.boot_id, boot.data(), boot.size());
  const OwnCgroup cgroup = own_cgroup();
  process.memory_cgroup = storage.store(cgroup.path);
  process.memory_cgroup_inode = cgroup.inode;
  process.memory_cgroup_oom_kills = cgroup.oom_kills;
  utsname system{};
  if (uname(&system) == 0) process.host = storage.store(system.nodename);
  char program[PATH_MAX];
  const ssize_t length = readlink(folder.file("exe").text, program, sizeof program);
  if (length > 0) process.program = storage.store({program, static_cast<std::size_t>(length)});
  const Mapping arguments = Mapping::anonymous(32 << 10);
  if (arguments) {
    process.command_line = storage.store(read_small_file(
        folder.file("cmdline").text, {static_cast<char*>(arguments.data()), arguments.size()}));
  }
}

}  // namespace cuwarden::ledger
