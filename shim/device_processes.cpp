// NVML's types and codes stand here as numbers, since nvml.h is not in every CUDA Toolkit:
// https://docs.nvidia.com/deploy/nvml-api.
#include "shim/device_processes.hpp"

#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string_view>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "shim/real_libc.hpp"

namespace cuwarden::shim {
namespace {

using Answer = DeviceProcessesAnswer;
using NvmlDevice = void*;

constexpr int nvml_success = 0, nvml_invalid_argument = 2, nvml_not_supported = 3,
              nvml_no_permission = 4, nvml_not_found = 6, nvml_insufficient_size = 7,
              nvml_function_not_found = 13;

// An entry begins with an unsigned pid, and has the bytes, an unsigned long long, at 8. What comes
// after that depends on the version of the function, and not on it alone: _v3 had entries of 32
// bytes in the drivers 535.43 to 535.86, and has 24 in all others.
constexpr std::size_t entry_sizes[] = {16, 24, 32}, largest_entry = 32;
constexpr std::uint32_t most_processes = 512;
constexpr unsigned char untouched = 0xa5;

struct RawList {
  alignas(8) unsigned char bytes[most_processes * largest_entry];
  std::uint32_t count;

  // By how much of it was written.
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
  // What the two lists have in common is in both the whole of what that process holds.
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
  DeviceProcess processes_[2 * most_processes];
  std::size_t count_ = 0;
};

// NVML in use; the use ends with the object.
class Nvml {
 public:
  explicit Nvml(const char* library) noexcept {
    const RealLibc& libc = real_libc();
    if (libc.dlopen == nullptr || libc.libc_dlsym == nullptr) return;
    // It is never closed: unloading would be one more thing that the program can notice.
    library_ = libc.dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) {
      forget_error();
      return;
    }
    const auto begin = find<int (*)()>("nvmlInit_v2");
    end_ = find<int (*)()>("nvmlShutdown");
    get_device_ = find<int (*)(const char*, NvmlDevice*)>("nvmlDeviceGetHandleByUUID");
    if (begin == nullptr || end_ == nullptr || get_device_ == nullptr) {
      answer_ = Answer::no_function;
      return;
    }
    error_ = begin();
    begun_ = error_ == nvml_success;
    answer_ = begun_                         ? Answer::listed
              : error_ == nvml_no_permission ? Answer::not_permitted
                                             : Answer::not_initialised;
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() {
    if (begun_) end_();
  }

  // `listed`, as long as nothing failed.
  Answer answer() const noexcept { return answer_; }
  int error() const noexcept { return error_; }

  // Null with the answer.
  NvmlDevice device(std::span<const char, 16> uuid) noexcept {
    NvmlDevice found = nullptr;
    // CUDA's number does not tell a device from a part of one.
    for (const char* kind : {"GPU-", "MIG-"}) {
      char text[41];
      write_uuid(kind, uuid, text);
      error_ = get_device_(text, &found);
      if (error_ == nvml_success) return found;
      if (error_ != nvml_not_found && error_ != nvml_invalid_argument) break;
    }
    answer_ = error_ == nvml_not_found || error_ == nvml_invalid_argument ? Answer::no_device
                                                                          : answer_to(error_);
    return nullptr;
  }

  // The newest of a function's versions that there is. False with the answer.
  bool list(NvmlDevice device, const char* const (&versions)[3], RawList& raw,
            std::size_t& entry_size) noexcept {
    constexpr std::size_t declared[] = {24, 24, 16};
    error_ = 0;
    answer_ = Answer::no_function;
    for (std::size_t i = 0; i < std::size(versions); ++i) {
      const auto function = find<int (*)(NvmlDevice, unsigned*, void*)>(versions[i]);
      if (function == nullptr) continue;
      std::memset(raw.bytes, untouched, sizeof raw.bytes);
      raw.count = most_processes;
      error_ = function(device, &raw.count, raw.bytes);
      answer_ = answer_to(error_);
      if (error_ == nvml_function_not_found) continue;
      if (error_ != nvml_success) return false;
      raw.count = std::min(raw.count, most_processes);
      entry_size = raw.entry_size(declared[i]);
      return true;
    }
    return false;
  }

 private:
  static Answer answer_to(int error) noexcept {
    switch (error) {
      case nvml_success:
        return Answer::listed;
      case nvml_not_supported:
        return Answer::not_supported;
      case nvml_no_permission:
        return Answer::not_permitted;
      case nvml_insufficient_size:
        return Answer::too_many;
      case nvml_function_not_found:
        return Answer::no_function;
      default:
        return Answer::failed;
    }
  }

  // "GPU-73696d75-6c61-7465-642d-6770752d3030"
  static void write_uuid(const char* kind, std::span<const char, 16> uuid,
                         char (&text)[41]) noexcept {
    constexpr char digits[] = "0123456789abcdef";
    char* at = std::copy(kind, kind + 4, text);
    for (std::size_t i = 0; i < uuid.size(); ++i) {
      if (i == 4 || i == 6 || i == 8 || i == 10) *at++ = '-';
      const auto byte = static_cast<unsigned char>(uuid[i]);
      *at++ = digits[byte >> 4];
      *at++ = digits[byte & 15];
    }
    *at = '\0';
  }

  template <class Function>
  Function find(const char* name) const noexcept {
    void* const found = real_libc().libc_dlsym(library_, name);
    if (found == nullptr) forget_error();
    return reinterpret_cast<Function>(found);
  }

  // The program's next dlerror() is not to speak of what we looked for.
  static void forget_error() noexcept {
    if (real_libc().dlerror != nullptr) real_libc().dlerror();
  }

  void* library_ = nullptr;
  int (*end_)() = nullptr;
  int (*get_device_)(const char*, NvmlDevice*) = nullptr;
  bool begun_ = false;
  int error_ = 0;
  Answer answer_ = Answer::no_library;
};

constexpr const char* compute_lists[] = {"nvmlDeviceGetComputeRunningProcesses_v3",
                                         "nvmlDeviceGetComputeRunningProcesses_v2",
                                         "nvmlDeviceGetComputeRunningProcesses"};
constexpr const char* graphics_lists[] = {"nvmlDeviceGetGraphicsRunningProcesses_v3",
                                          "nvmlDeviceGetGraphicsRunningProcesses_v2",
                                          "nvmlDeviceGetGraphicsRunningProcesses"};

bool pids_are_the_machines() noexcept {
  constexpr std::string_view first = "pid:[4026531836]";  // PROC_PID_INIT_INO, fixed in the kernel
  char text[64];
  const ssize_t length = readlink("/proc/self/ns/pid", text, sizeof text);
  return length > 0 && std::string_view(text, static_cast<std::size_t>(length)) == first;
}

bool exists_here(std::uint32_t pid) noexcept {
  return pid != 0 && pid <= INT_MAX && (kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM);
}

// Some drivers give the numbers of the caller's namespace, and leave out what is not in it; others
// give the machine's. Where our own number is listed, and none that is nobody's here, it is the
// former.
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
  const auto answer = [&](std::uint32_t found) {
    return DeviceProcesses{nvml.answer(), nvml.error(), found};
  };
  if (nvml.answer() != Answer::listed) return answer(0);
  const NvmlDevice device = nvml.device(uuid);
  if (device == nullptr) return answer(0);

  RawList raw;
  std::size_t entry_size = 0;
  Processes processes;
  if (!nvml.list(device, compute_lists, raw, entry_size))
    return answer(nvml.answer() == Answer::too_many ? raw.count : 0);
  processes.add(raw, entry_size);
  // Not every device has graphics: what fails here takes nothing from what is known.
  if (nvml.list(device, graphics_lists, raw, entry_size)) processes.add(raw, entry_size);

  const std::span<DeviceProcess> all = processes.all();
  tell_whose(all);
  std::sort(all.begin(), all.end(), [](const DeviceProcess& a, const DeviceProcess& b) {
    const bool a_known = a.used_bytes != DeviceProcess::unknown,
               b_known = b.used_bytes != DeviceProcess::unknown;
    if (a_known != b_known) return a_known;
    return a.used_bytes != b.used_bytes ? a.used_bytes > b.used_bytes : a.pid < b.pid;
  });
  std::copy_n(all.begin(), std::min(all.size(), into.size()), into.begin());
  return {Answer::listed, 0, static_cast<std::uint32_t>(all.size())};
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
