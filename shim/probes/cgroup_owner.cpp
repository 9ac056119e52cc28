// A line of /proc/PID/cgroup is "4:memory:/path" or, for version 2, "0::/path". Slurm's paths have
// a part such as "job_4711". Container runtimes have "docker-ID.scope", "cri-containerd-ID.scope",
// "libpod-ID.scope" or only "ID". Kubernetes has "podUID" or "kubepods-burstable-podUID.slice".
#include "shim/probes/cgroup_owner.hpp"

#include <algorithm>
#include <cstddef>

namespace cuwarden::shim {
namespace {

// Longest part of a path that is taken for a name. Linux allows no longer file name.
constexpr std::size_t longest_file_name = 255;
// End of the path of a cgroup that was removed. A zombie's cgroup may be.
constexpr std::string_view deleted = " (deleted)";

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }

// Returns the digits of a part such as "job_4711"; empty for other parts.
std::string_view job_in(std::string_view part) noexcept {
  constexpr std::string_view prefix = "job_";
  if (!part.starts_with(prefix) || part.size() == prefix.size()) return {};
  part.remove_prefix(prefix.size());
  return std::ranges::all_of(part, is_digit) ? part : std::string_view();
}

// Returns the id in a part such as "docker-ID.scope" or "ID"; empty for other parts. The process
// that watches a container of Podman is outside of it, in "libpod-conmon-ID.scope".
std::string_view container_in(std::string_view part) noexcept {
  constexpr std::size_t id_digits = 64;
  constexpr std::string_view lxc = "lxc.payload.";
  if (part.starts_with(lxc)) return part.substr(lxc.size());
  if (part.find("conmon") != part.npos) return {};
  for (std::size_t at = 0; at < part.size();) {
    std::size_t end = at;
    while (end < part.size() && is_hex(part[end])) ++end;
    if (end - at == id_digits) return part.substr(at, id_digits);
    at = end + 1;
  }
  return {};
}

// Returns the uid in a part such as "kubepods-podUID.slice" or "podUID"; empty for other parts.
std::string_view pod_in(std::string_view part) noexcept {
  constexpr std::size_t uid_digits = 32;
  for (std::size_t at = part.find("pod"); at != part.npos; at = part.find("pod", at + 1)) {
    const std::size_t start = at + 3;
    std::size_t end = start, digits = 0;
    for (; end < part.size() && digits < uid_digits; ++end) {
      if (is_hex(part[end]))
        ++digits;
      else if ((part[end] != '-' && part[end] != '_') || end == start)
        break;
    }
    if (digits == uid_digits && (end == part.size() || !is_hex(part[end])))
      return part.substr(start, end - start);
  }
  return {};
}

bool is_unit(std::string_view part) noexcept {
  return part.ends_with(".service") || part.ends_with(".scope") || part.ends_with(".slice");
}

void note_path(std::string_view path, CgroupOwner& owner) noexcept {
  const bool is_slurms = path.find("slurm") != path.npos;
  std::string_view unit, above;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (part.empty() || part.size() > longest_file_name) continue;
    // In a container's own view, the path begins above the part that names Slurm.
    const std::string_view job = job_in(part);
    if (!job.empty() && (is_slurms || path.starts_with("step_"))) owner.job = job;
    std::string_view container = container_in(part);
    if (container.empty() && above == "lxc") container = part;
    if (!container.empty()) owner.container = container;
    if (const std::string_view pod = pod_in(part); !pod.empty()) owner.pod = pod;
    if (is_unit(part)) unit = part;
    above = part;
  }
  // systemd's own tree has the innermost unit, and its line comes after those of the controllers.
  if (!unit.empty()) owner.unit = unit;
}

}  // namespace

CgroupOwner owner_in_cgroup(std::string_view text) noexcept {
  CgroupOwner owner;
  for (std::size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
    std::string_view line = text.substr(0, end);
    if (line.ends_with(deleted)) line.remove_suffix(deleted.size());
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? first : line.find(':', first + 1);
    if (second != line.npos) note_path(line.substr(second + 1), owner);
  }
  if (!owner.job.empty() || !owner.container.empty() || !owner.pod.empty()) owner.unit = {};
  return owner;
}

}  // namespace cuwarden::shim
