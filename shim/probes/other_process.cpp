#include "shim/probes/other_process.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <climits>
#include <ctime>
#include <string_view>
#include <utility>

#include "reporters/words/printable.hpp"
#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/files/each_line.hpp"
#include "runtime_hooks/core/files/folder_entries.hpp"
#include "runtime_hooks/core/files/proc_stat.hpp"
#include "runtime_hooks/core/files/small_file.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "shim/probes/cgroup_owner.hpp"

namespace cuwarden::shim {
namespace {

using ledger::RunState;

// Longest user's name that is taken from /etc/passwd.
constexpr std::size_t longest_user_name = 64;
// Uid that stands for all users of other user namespaces.
constexpr std::uint64_t overflow_uid = 65534;

// The facts in a process's or a thread's file `stat`.
class Stat {
 public:
  // `folder`: descriptor of the process's or thread's folder in /proc.
  explicit Stat(int folder) noexcept
      : facts_(proc_stat_in(read_small_file(folder, "stat", text_))) {}
  Stat(const Stat&) = delete;
  Stat& operator=(const Stat&) = delete;
  const ProcStat* operator->() const noexcept { return &facts_; }

 private:
  char text_[1024];
  const ProcStat facts_;
};

Descriptor folder_of_process(int proc, std::uint32_t pid) {
  return open_folder(proc, std::to_string(pid).c_str());
}

std::string link_at(int folder, const char* name) {
  char path[PATH_MAX];
  const ssize_t length = readlinkat(folder, name, path, sizeof path);
  if (length <= 0 || length == static_cast<ssize_t>(sizeof path)) return {};
  return {path, static_cast<std::size_t>(length)};
}

// Returns the path of the process's program, or else `name`. Other users choose the names, so they
// are made printable. Names then are equal in all parts of a report, where redaction looks for
// them.
std::string program_of(int process, std::string_view name) {
  std::string path = link_at(process, "exe");
  constexpr std::string_view gone = " (deleted)";
  if (path.ends_with(gone)) path.resize(path.size() - gone.size());
  return printable(path.empty() ? std::string(name) : std::move(path));
}

// True if SIGKILL was sent to the thread or to its process, and is not dealt with yet. `task`: a
// folder of /proc with a file `status`.
bool is_killed(int task) noexcept {
  char buffer[8192];
  const std::string_view text = read_small_file(task, "status", buffer);
  for (const std::string_view name : {"\nSigPnd:", "\nShdPnd:"}) {
    const std::size_t at = text.find(name);
    if (at == text.npos) continue;
    std::string_view digits = text.substr(at + name.size());
    digits.remove_prefix(std::min(digits.find_first_not_of(" \t"), digits.size()));
    std::uint64_t pending = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), pending, 16);
    if ((pending >> (SIGKILL - 1) & 1) != 0) return true;
  }
  return false;
}

// Most threads of a process whose state is read.
constexpr int most_threads = 512;

// True if a thread of the process waits in the kernel (D) although it was killed.
bool has_thread_in_the_kernel(int process) noexcept {
  const Descriptor tasks = open_folder_to_list(process, "task");
  if (!tasks) return false;
  bool found = false;
  int left = most_threads;
  each_folder_entry(tasks.number(), [&](const char* name) {
    if (*name == '.') return true;
    const Descriptor task = open_folder(tasks.number(), name);
    found = task && Stat(task.number())->state == 'D' && is_killed(task.number());
    return !found && --left != 0;
  });
  return found;
}

// State D alone says little: a process that waits for a disk, for a network's file system or for a
// child's exec() shows it, and most such waits end when the process is killed. So a process is
// stuck only if it was killed and still waits, each time that it is looked at.
RunState state_in_the_kernel(int process, int& waits_left) noexcept {
  constexpr timespec pause{0, 5'000'000};
  constexpr int looks = 3;
  for (int look = 0; look < looks; ++look) {
    if (look != 0) nanosleep(&pause, nullptr);
    if (!has_thread_in_the_kernel(process)) return RunState::alive;
    if (look == 0 && waits_left-- <= 0) return RunState::unknown;
  }
  return RunState::stuck;
}

RunState run_state_of(int process, const Stat& stat, int& waits_left) noexcept {
  switch (stat->state) {
    case '\0':
      return RunState::unknown;
    case 'X':
    case 'x':
    case 'Z':
      // A process whose first thread alone has ended shows the same letter.
      if (stat->threads <= 1) return RunState::zombie;
      [[fallthrough]];
    case 'D':
      return state_in_the_kernel(process, waits_left);
    default:
      return RunState::alive;
  }
}

// Returns the time of the process's start, in nanoseconds since 1970; 0: unknown.
std::int64_t start_of(std::uint64_t ticks) noexcept {
  using namespace std::chrono;
  const std::uint64_t age = age_ns_of(ticks);
  const nanoseconds now = system_clock::now().time_since_epoch();
  return age == 0 ? 0 : now.count() - static_cast<std::int64_t>(age);
}

// Returns the real uid in /proc/PID/status; null if it cannot be read.
std::optional<std::uint64_t> uid_of(int process) noexcept {
  char buffer[4096];
  std::string_view text = read_small_file(process, "status", buffer);
  const std::size_t at = text.find("\nUid:");
  if (at == text.npos) return std::nullopt;
  text.remove_prefix(at + 5);
  return take_number(text);
}

// Returns the uid of a pod as Kubernetes writes it: systemd's names have '_' for its dashes.
std::string with_dashes(std::string_view uid) {
  std::string text(uid);
  std::ranges::replace(text, '_', '-');
  return text;
}

// Returns the number that is the whole text; null if the text is none below 2^32.
std::optional<std::uint32_t> number_of(std::string_view text) noexcept {
  std::uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && at == end ? std::optional(number) : std::nullopt;
}

// True for the path of the file of the GPU with that number, such as "/dev/nvidia0". A process may
// have it open without memory on the device, as one that asks for the GPU's temperature has.
bool is_device_file(std::string_view path, std::uint32_t gpu) noexcept {
  constexpr std::string_view prefix = "/dev/nvidia";
  return path.starts_with(prefix) && number_of(path.substr(prefix.size())) == gpu;
}

bool has_device_file(int process, std::uint32_t gpu, std::uint64_t end_ns) {
  const Descriptor files = open_folder_to_list(process, "fd");
  bool found = false;
  if (!files) return false;
  each_folder_entry(files.number(), [&](const char* name) {
    char path[64];  // the end of a longer path does not matter
    const ssize_t length = readlinkat(files.number(), name, path, sizeof path);
    found = length > 0 && is_device_file({path, static_cast<std::size_t>(length)}, gpu);
    return !found && now_ns() < end_ns;
  });
  return found;
}

// True if the process is a descendant of the calling one. `parent`: pid of the process's parent.
bool is_own_descendant(int proc, std::uint32_t parent) noexcept {
  constexpr int most_generations = 64;
  const auto own = static_cast<std::uint32_t>(getpid());
  for (int i = 0; i < most_generations && parent > 1; ++i) {
    if (parent == own) return true;
    const Descriptor process = folder_of_process(proc, parent);
    parent = process ? Stat(process.number())->parent : 0;
  }
  return false;
}

}  // namespace

std::string OtherProcesses::user_of(std::uint64_t uid) {
  const auto [entry, is_new] = users_.try_emplace(uid);
  std::string& user = entry->second;
  if (!is_new) return user;
  user = std::to_string(uid);
  std::string name;
  // A line is "NAME:PASSWORD:UID:GID:...".
  each_line_of(passwd_, [&](std::string_view line) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? first : line.find(':', first + 1);
    if (!name.empty() || second == line.npos || first > longest_user_name) return;
    const std::string_view number =
        line.substr(second + 1, line.find(':', second + 1) - second - 1);
    if (number == user) name = printable(std::string(line.substr(0, first)));
  });
  if (!name.empty()) user = name;
  return user;
}

ProcessFacts OtherProcesses::facts_of(std::uint32_t pid) {
  const ErrnoGuard guard;
  const Uncancelled keep;
  ProcessFacts facts;
  const Descriptor proc = open_folder(AT_FDCWD, proc_);
  const Descriptor process = proc ? folder_of_process(proc.number(), pid) : Descriptor();
  if (!process) return facts;
  const Stat stat(process.number());
  facts.run_state = run_state_of(process.number(), stat, waits_left_);
  facts.parent = stat->parent;
  facts.start_realtime_ns = start_of(stat->start_ticks);
  facts.program = program_of(process.number(), stat->name);
  if (const Descriptor parent = folder_of_process(proc.number(), facts.parent))
    facts.parent_program = program_of(parent.number(), Stat(parent.number())->name);
  if (const auto uid = uid_of(process.number())) {
    if (*uid != overflow_uid) facts.user = user_of(*uid);
    facts.is_of_another_user = *uid != getuid();
  }
  char buffer[8192];
  const CgroupOwner owner = owner_in_cgroup(read_small_file(process.number(), "cgroup", buffer));
  facts.job = owner.job;
  facts.container = owner.container;
  facts.pod = with_dashes(owner.pod);
  facts.unit = owner.unit;
  return facts;
}

void OtherProcesses::each_with_device_file(std::uint32_t gpu,
                                           FunctionRef<bool(std::uint32_t)> visit) {
  const ErrnoGuard guard;
  const Uncancelled keep;
  constexpr std::uint64_t longest_ns = 100'000'000;
  constexpr int most_processes = 4000;
  const std::uint64_t end_ns = now_ns() + longest_ns;
  const Descriptor proc = open_folder_to_list(AT_FDCWD, proc_);
  if (!proc) return;
  int left = most_processes;
  each_folder_entry(proc.number(), [&](const char* name) {
    const auto pid = number_of(name);
    if (!pid || *pid == static_cast<std::uint32_t>(getpid())) return true;
    if (left-- == 0 || now_ns() >= end_ns) return false;
    const Descriptor process = folder_of_process(proc.number(), *pid);
    if (!process || !has_device_file(process.number(), gpu, end_ns)) return true;
    const Stat stat(process.number());
    if (stat->name == "nvidia-persiste" || is_own_descendant(proc.number(), stat->parent))
      return true;
    return visit(*pid);
  });
}

}  // namespace cuwarden::shim
