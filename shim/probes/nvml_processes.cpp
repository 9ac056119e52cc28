#include "shim/probes/nvml_processes.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string_view>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "shim/probes/nvml.hpp"

namespace cuwarden::shim {
namespace {

using Answer = DeviceProcessesAnswer;

// An entry begins with an unsigned pid, and has the bytes, an unsigned long long, at 8. The length
// of an entry depends on the function's version and on the driver: _v3 has entries of 32 bytes in
// the drivers 535.43 to 535.86, and of 24 bytes in all others.
constexpr std::size_t entry_sizes[] = {16, 24, 32}, largest_entry = 32;
constexpr std::uint32_t most_listed = 512;
constexpr unsigned char untouched = 0xa5;

struct RawList {
  alignas(8) unsigned char bytes[most_listed * largest_entry];
  std::uint32_t count;

  // Returns the bytes of an entry, found by how much of the list NVML wrote.
  std::size_t entry_size(std::size_t declared) const noexcept {
    std::size_t end = sizeof bytes;
    while (end > 0 && bytes[end - 1] == untouched) --end;
    for (const std::size_t size : entry_sizes)
      if (end <= count * size && end + 8 > count * size) return size;
    return declared;
  }
};

class Processes {
 public:
  void add(const RawList& raw, std::size_t entry_size) noexcept {
    for (std::uint32_t i = 0; i < raw.count; ++i) {
      DeviceProcess process;
      std::memcpy(&process.pid, raw.bytes + i * entry_size, sizeof process.pid);
      std::memcpy(&process.used_bytes, raw.bytes + i * entry_size + 8, sizeof process.used_bytes);
      add(process);
    }
  }
  // A process may be in both lists. It is counted once, because each list has all of its memory.
  void add(const DeviceProcess& process) noexcept {
    for (DeviceProcess& known : all()) {
      if (known.pid != process.pid) continue;
      if (process.used_bytes != DeviceProcess::unknown &&
          (known.used_bytes == DeviceProcess::unknown || known.used_bytes < process.used_bytes))
        known.used_bytes = process.used_bytes;
      return;
    }
    if (count_ < std::size(processes_)) processes_[count_++] = process;
  }
  std::span<DeviceProcess> all() noexcept { return {processes_, count_}; }

 private:
  DeviceProcess processes_[2 * most_listed];
  std::size_t count_ = 0;
};

// Lists processes by the newest version of the function that the library has. Returns false if it
// fails, with the reason in nvml.answer().
bool list(Nvml& nvml, NvmlDevice device, const char* const (&versions)[3], RawList& raw,
          std::size_t& entry_size) noexcept {
  constexpr std::size_t declared[] = {24, 24, 16};
  nvml.lacks_function();
  for (std::size_t i = 0; i < std::size(versions); ++i) {
    const auto function = nvml.find<int (*)(NvmlDevice, unsigned*, void*)>(versions[i]);
    if (function == nullptr) continue;
    std::memset(raw.bytes, untouched, sizeof raw.bytes);
    raw.count = most_listed;
    nvml.answered(function(device, &raw.count, raw.bytes));
    if (nvml.answer() == Answer::no_function) continue;
    if (nvml.answer() != Answer::listed) return false;
    raw.count = std::min(raw.count, most_listed);
    entry_size = raw.entry_size(declared[i]);
    return true;
  }
  return false;
}

constexpr const char* compute_lists[] = {"nvmlDeviceGetComputeRunningProcesses_v3",
                                         "nvmlDeviceGetComputeRunningProcesses_v2",
                                         "nvmlDeviceGetComputeRunningProcesses"};
constexpr const char* graphics_lists[] = {"nvmlDeviceGetGraphicsRunningProcesses_v3",
                                          "nvmlDeviceGetGraphicsRunningProcesses_v2",
                                          "nvmlDeviceGetGraphicsRunningProcesses"};

std::optional<std::uint32_t> file_number_of(const Nvml& nvml, NvmlDevice device) noexcept {
  const auto number_of = nvml.find<int (*)(NvmlDevice, unsigned*)>("nvmlDeviceGetMinorNumber");
  unsigned number = 0;
  if (number_of == nullptr || number_of(device, &number) != 0) return std::nullopt;
  return number;
}

bool pids_are_the_machines() noexcept {
  constexpr std::string_view first = "pid:[4026531836]";  // PROC_PID_INIT_INO, fixed in the kernel
  char text[64];
  const ssize_t length = readlink("/proc/self/ns/pid", text, sizeof text);
  return length > 0 && std::string_view(text, static_cast<std::size_t>(length)) == first;
}

bool exists_here(std::uint32_t pid) noexcept {
  return pid != 0 && pid <= INT_MAX && (kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM);
}

// Some drivers list pids of the caller's namespace, and leave out processes of other namespaces;
// others list pids of the machine. If this process's own pid is listed, and every listed pid exists
// here, they are pids of the namespace.
void tell_whose(std::span<DeviceProcess> processes) noexcept {
  const auto own = static_cast<std::uint32_t>(getpid());
  const bool sure =
      pids_are_the_machines() ||
      (std::any_of(processes.begin(), processes.end(),
                   [&](const DeviceProcess& process) { return process.pid == own; }) &&
       std::all_of(processes.begin(), processes.end(),
                   [](const DeviceProcess& process) { return exists_here(process.pid); }));
  if (!sure) return;
  for (DeviceProcess& process : processes) {
    process.whose =
        process.pid == own ? DeviceProcess::Whose::this_process : DeviceProcess::Whose::another;
  }
}

}  // namespace

DeviceProcesses read_device_processes(std::span<const char, 16> uuid, std::span<DeviceProcess> into,
                                      const char* library) noexcept {
  const ErrnoGuard guard;
  const Uncancelled keep;
  Nvml nvml(library);
  std::optional<std::uint32_t> file_number;
  const auto answer = [&](std::uint32_t found) {
    return DeviceProcesses{nvml.answer(), nvml.error(), found, file_number};
  };
  if (nvml.answer() != Answer::listed) return answer(0);
  const NvmlDevice device = nvml.device(uuid);
  if (device == nullptr) return answer(0);
  file_number = file_number_of(nvml, device);

  RawList raw;
  std::size_t entry_size = 0;
  Processes processes;
  if (!list(nvml, device, compute_lists, raw, entry_size))
    return answer(nvml.answer() == Answer::too_many ? raw.count : 0);
  processes.add(raw, entry_size);
  // Not every device has graphics: a failure of this list leaves the other one valid.
  if (list(nvml, device, graphics_lists, raw, entry_size)) processes.add(raw, entry_size);

  const std::span<DeviceProcess> all = processes.all();
  tell_whose(all);
  std::sort(all.begin(), all.end(), [](const DeviceProcess& a, const DeviceProcess& b) {
    const bool a_known = a.used_bytes != DeviceProcess::unknown,
               b_known = b.used_bytes != DeviceProcess::unknown;
    if (a_known != b_known) return a_known;
    return a.used_bytes != b.used_bytes ? a.used_bytes > b.used_bytes : a.pid < b.pid;
  });
  std::copy_n(all.begin(), std::min(all.size(), into.size()), into.begin());
  return {Answer::listed, 0, static_cast<std::uint32_t>(all.size()), file_number};
}

const char* text_of(DeviceProcessesAnswer answer) noexcept {
  switch (answer) {
    case Answer::listed:
      return "listed by NVML";
    case Answer::no_library:
      return "NVML (libnvidia-ml.so.1) cannot be loaded";
    case Answer::no_function:
      return "this NVML lacks a function that lists processes";
    case Answer::not_initialised:
      return "NVML could not be initialised";
    case Answer::no_device:
      return "NVML does not know this device";
    case Answer::not_permitted:
      return "NVML may not list processes here";
    case Answer::not_supported:
      return "NVML lists no processes for this kind of device";
    case Answer::too_many:
      return "NVML lists more processes than are read";
    case Answer::failed:
      break;
  }
  return "NVML failed to list processes";
}

}  // namespace cuwarden::shim
