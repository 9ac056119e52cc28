// Tells from a process's cgroup which batch job or container the process belongs to. Schedulers,
// container runtimes and systemd make a cgroup for each job, container or service, and put its name
// into the cgroup's path.
#pragma once

#include <string_view>

namespace cuwarden::shim {

// The owners that a process's cgroup names. All texts are parts of the given text; empty: the
// cgroup names no such owner.
struct CgroupOwner {
  std::string_view job;  // id of a Slurm job, such as "4711"; empty: none
  // Id of a container of Docker, Podman, containerd or CRI-O (64 hexadecimal digits), or name of a
  // container of LXC; empty: none.
  std::string_view container;
  // Uid of a Kubernetes pod as the cgroup's path writes it: some paths have '_' for '-', or no
  // dashes. Empty: none.
  std::string_view pod;
  // Innermost unit of systemd, such as "ollama.service" or "session-3.scope", in the last line that
  // names a unit. Empty: none, or the cgroup names a job, a container or a pod.
  std::string_view unit;
};

// Returns the owners that the text of /proc/PID/cgroup names. The text may be of both versions of
// cgroups. A line without a line feed at its end is ignored, because it may be cut.
CgroupOwner owner_in_cgroup(std::string_view text) noexcept;

}  // namespace cuwarden::shim
