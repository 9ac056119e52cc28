// Reads facts about other processes from /proc: the program, the user, the start, the state, the
// job or container. They tell a user whose process holds the memory of a device.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/ledger/format/incident_layout.hpp"

namespace cuwarden::shim {

// Facts about a process, as far as /proc tells them to this process. Texts are empty, and numbers
// 0, if they are unknown. Names of programs and users have a question mark for each byte that
// printable() would replace.
struct ProcessFacts {
  // State of the process: unknown, alive, zombie, or stuck in the kernel after a SIGKILL.
  ledger::RunState run_state = ledger::RunState::unknown;
  std::uint32_t parent = 0;  // pid of the parent process; 0: unknown
  // Start of the process, in ns since 1970 (UTC); 0: unknown.
  std::int64_t start_realtime_ns = 0;
  // Path of the program's file. If the kernel does not tell the path, as for other users'
  // processes, the program's name, of which the kernel keeps 15 characters. `parent_program`: path
  // or name of the parent process's program. Empty: unknown.
  std::string program, parent_program;
  // Name of the process's user by /etc/passwd; the uid in digits if the user has no name there.
  // Empty: unknown.
  std::string user;
  // true if the process's uid is known, and is not the caller's real uid
  bool is_of_another_user = false;
  // Id of the Slurm job that the path of the process's cgroup names; empty: none.
  std::string job;
  std::string container;  // id of the process's container, for LXC its name; empty: none
  std::string pod;        // uid of the process's Kubernetes pod, with dashes; empty: none
  // Unit of systemd that the process belongs to. Empty: none, or a job, container or pod is known.
  std::string unit;
};

// Reads facts about processes, and looks each user's name up once. Opens and allocates, so it must
// not be used in a thread that a seccomp filter confines, or under a lock.
class OtherProcesses {
 public:
  // `proc`, `passwd`: paths that are read instead of /proc and /etc/passwd; must outlive the
  // object.
  explicit OtherProcesses(const char* proc = "/proc", const char* passwd = "/etc/passwd") noexcept
      : proc_(proc), passwd_(passwd) {}

  // Returns the facts about the process with this pid. Takes less than 1 ms. Takes some 10 ms for a
  // process that was killed but is still in the kernel, because its state is read again after a
  // pause. Only 8 such processes are read again; the state of further ones is unknown. Keeps errno.
  // May throw std::bad_alloc.
  ProcessFacts facts_of(std::uint32_t pid);
  // Calls visit(pid) for each process that has the file of a GPU open, except for the caller and
  // its descendants. Sees only processes whose descriptors the caller may look at. Stops if visit()
  // returns false, after 100 ms, or after 4,000 processes. Leaves out nvidia-persistenced, which
  // holds no memory. `gpu`: number of the file, as in /dev/nvidia0. Keeps errno.
  void each_with_device_file(std::uint32_t gpu, FunctionRef<bool(std::uint32_t)> visit);

 private:
  // Returns the name of the user with this uid; the uid in digits if the user has no name, or one
  // of more than 64 characters. Keeps the result in `users_`.
  std::string user_of(std::uint64_t uid);

  // Path of the folder that is read as /proc.
  const char* const proc_;
  // Path of the file that is read as /etc/passwd.
  const char* const passwd_;
  // Number of killed processes, still in the kernel, whose state may yet be read again to see if
  // they end.
  int waits_left_ = 8;
  std::map<std::uint64_t, std::string> users_;  // names by uid, of users that were looked up
};

}  // namespace cuwarden::shim
