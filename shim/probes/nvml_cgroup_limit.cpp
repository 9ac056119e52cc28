#include "shim/probes/nvml_cgroup_limit.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/files/cgroup_memory.hpp"
#include "runtime_hooks/core/files/open_file.hpp"
#include "runtime_hooks/core/files/small_file.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "shim/probes/nvml.hpp"

namespace cuwarden::shim {
namespace {

// A limit of so many bytes is none: no device has them. NVML has a large number for "no limit".
constexpr std::uint64_t no_device_limit = std::uint64_t{1} << 50;

// nvmlGetMemoryLimits_v1_t, as NVML's documentation describes it. The caller sets `cgroup`. The
// limits are in bytes; memory below the soft one is guaranteed.
struct Limits {
  const char* cgroup;
  unsigned long long soft, hard, used;
};

std::uint64_t left(const NvmlCgroupLimit& limit) noexcept {
  return limit.limit_bytes - std::min(limit.limit_bytes, limit.used_bytes);
}

// Returns true if the limits of the cgroups above this one count, too, as they do with the kernel's
// controller `dmem`. Without it the driver uses the controller `misc`, and the nearest limit alone
// counts.
bool nests(const char* cgroup) noexcept {
  const Descriptor folder = open_folder(AT_FDCWD, cgroup);
  return folder && faccessat(folder.number(), "dmem.max", F_OK, 0) == 0;
}

}  // namespace

UnifiedCgroup own_unified_cgroup() noexcept {
  const ErrnoGuard guard;
  const Uncancelled keep;
  UnifiedCgroup own;
  char buffer[PATH_MAX + 4096];
  for (std::string_view text = read_small_file("/proc/self/cgroup", buffer);
       text.find('\n') != text.npos; text.remove_prefix(text.find('\n') + 1)) {
    constexpr std::string_view version_2 = "0::";
    std::string_view line = text.substr(0, text.find('\n'));
    if (!line.starts_with(version_2)) continue;
    line.remove_prefix(version_2.size());
    if (line == "/") line = {};
    if (line.starts_with("/..") || cgroup_mount.size() + line.size() >= sizeof own.path) break;
    char* const end = std::ranges::copy(cgroup_mount, own.path).out;
    *std::ranges::copy(line, end).out = '\0';
    break;
  }
  return own;
}

std::optional<NvmlCgroupLimit> read_nvml_cgroup_limit(std::span<const char, 16> uuid,
                                                      const char* cgroup,
                                                      const char* library) noexcept {
  const ErrnoGuard guard;
  const Uncancelled keep;
  const std::string_view given = cgroup;
  char path[PATH_MAX];
  if (!given.starts_with(cgroup_mount) || given.size() >= sizeof path) return std::nullopt;
  *std::ranges::copy(given, path).out = '\0';
  Nvml nvml(library);
  if (nvml.answer() != NvmlAnswer::listed) return std::nullopt;
  const auto limits_of = nvml.find<int (*)(NvmlDevice, Limits*)>("nvmlDeviceGetMemoryLimits_v1");
  const NvmlDevice device = limits_of != nullptr ? nvml.device(uuid) : nullptr;
  if (device == nullptr) return std::nullopt;
  std::optional<NvmlCgroupLimit> tightest;
  std::size_t length = given.size();
  for (int level = 0; level < deepest_cgroup; ++level) {
    Limits limits{path, 0, 0, 0};
    // A cgroup without a limit of its own fails, or has that of the nearest one above.
    if (limits_of(device, &limits) == 0 && limits.hard < no_device_limit) {
      const NvmlCgroupLimit found{limits.hard, limits.used};
      if (!tightest || left(found) < left(*tightest)) tightest = found;
      if (!nests(path)) break;
    }
    length = std::string_view(path, length).rfind('/');
    if (length == std::string_view::npos || length < cgroup_mount.size()) break;
    path[length] = '\0';
  }
  return tightest;
}

}  // namespace cuwarden::shim
