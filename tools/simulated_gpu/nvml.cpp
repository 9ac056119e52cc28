// The part of libnvidia-ml.so.1 that tells which processes hold memory of a device. The simulated
// driver has the facts; this file gives them NVML's form. https://docs.nvidia.com/deploy/nvml-api
#include <atomic>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "tools/simulated_gpu/device/process_list.hpp"
#include "tools/simulated_gpu/hardware/device_uuid.hpp"

#define NVML_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using namespace cuwarden::simulated_gpu;

enum Result {
  success = 0,
  uninitialised = 1,
  invalid_argument = 2,
  not_supported = 3,
  no_permission = 4,
  not_found = 6,
  insufficient_size = 7,
};

struct ProcessInfo {  // NVML's structure of _v2 and _v3.
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};
constexpr unsigned no_instance = ~0u;

constinit std::atomic<int> users{0};

void* handle_of(int device) { return reinterpret_cast<void*>(std::intptr_t{device} + 1); }
int device_of(void* handle) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(handle) - 1);
}

// The whole device that a slice is part of has a handle of its own: the slice's number plus this
// offset.
constexpr int whole_devices = 1 << 16;
void* whole_of(int slice) { return handle_of(slice + whole_devices); }
bool is_whole(void* handle) { return device_of(handle) >= whole_devices; }

// NVML's structure of nvmlDeviceGetMemoryLimits_v1. The caller sets `cgroup`: path of a folder.
struct MemoryLimits {
  const char* cgroup;
  unsigned long long soft, hard, used;
};

// Returns the folder of this process's cgroup of version 2; empty if it has none.
std::string own_cgroup() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("0::")) return "/sys/fs/cgroup" + (line == "0::/" ? "" : line.substr(3));
  return {};
}

struct Memory {
  unsigned long long total, free, used;
};

// Lists processes as NVML does: if `into` has too little room, `count` gets the number of entries.
Result list_processes(void* handle, unsigned* count, ProcessInfo* into) {
  if (users == 0) return uninitialised;
  if (handle == nullptr || count == nullptr || (*count != 0 && into == nullptr))
    return invalid_argument;
  std::vector<ListedProcess> listed(1024);
  const int found =
      cuSimulatedGpuProcesses(device_of(handle), listed.data(), static_cast<int>(listed.size()));
  if (found == kNoSuchDevice) return invalid_argument;
  if (found == kListRefused) return no_permission;
  const unsigned room = *count;
  *count = static_cast<unsigned>(found);
  if (*count > room) return insufficient_size;
  for (unsigned i = 0; i < *count; ++i)
    into[i] = {listed[i].pid, listed[i].used_bytes, no_instance, no_instance};
  return success;
}

}  // namespace

NVML_EXPORT int nvmlInit_v2() {
  ++users;
  return success;
}

NVML_EXPORT int nvmlShutdown() {
  if (users == 0) return uninitialised;
  --users;
  return success;
}

NVML_EXPORT const char* nvmlErrorString(int result) {
  switch (result) {
    case success:
      return "The operation was successful";
    case uninitialised:
      return "NVML was not first initialized";
    case invalid_argument:
      return "A supplied argument is invalid";
    case not_supported:
      return "The operation is not supported";
    case no_permission:
      return "The current user does not have permission";
    case not_found:
      return "A query to find an object was unsuccessful";
    case insufficient_size:
      return "An input argument is not large enough";
    default:
      return "Unknown error";
  }
}

NVML_EXPORT int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  if (users == 0) return uninitialised;
  if (uuid == nullptr || handle == nullptr) return invalid_argument;
  WholeDevice whole;
  for (int device = 0; cuSimulatedGpuWhole(device, &whole) != kNoSuchDevice; ++device) {
    if (uuid != uuid_text_of_device(device, whole.is_sliced)) continue;
    *handle = handle_of(device);
    return success;
  }
  return not_found;
}

// The number in the name of the device's file, as in /dev/nvidia0. Slices have none.
NVML_EXPORT int nvmlDeviceGetMinorNumber(void* handle, unsigned* number) {
  if (users == 0) return uninitialised;
  WholeDevice whole;
  if (handle == nullptr || number == nullptr || is_whole(handle) ||
      cuSimulatedGpuWhole(device_of(handle), &whole) == kNoSuchDevice)
    return invalid_argument;
  if (whole.is_sliced) return not_supported;
  *number = static_cast<unsigned>(device_of(handle));
  return success;
}

NVML_EXPORT int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void* slice, void** handle) {
  if (users == 0) return uninitialised;
  WholeDevice whole;
  if (slice == nullptr || handle == nullptr || is_whole(slice) ||
      cuSimulatedGpuWhole(device_of(slice), &whole) == kNoSuchDevice || !whole.is_sliced)
    return invalid_argument;
  *handle = whole_of(device_of(slice));
  return success;
}

NVML_EXPORT int nvmlDeviceGetMemoryInfo(void* handle, Memory* into) {
  if (users == 0) return uninitialised;
  if (handle == nullptr || into == nullptr) return invalid_argument;
  WholeDevice whole;
  const int device = device_of(handle) - (is_whole(handle) ? whole_devices : 0);
  const int found = cuSimulatedGpuWhole(device, &whole);
  if (found == kNoSuchDevice) return invalid_argument;
  // A process that has a slice may not look beyond it.
  if (is_whole(handle) && found == kListRefused) return no_permission;
  *into = is_whole(handle) ? Memory{whole.bytes, whole.bytes, 0}
                           : Memory{whole.own_bytes, whole.own_free_bytes,
                                    whole.own_bytes - whole.own_free_bytes};
  return success;
}

// Only this process's own cgroup can have a limit.
NVML_EXPORT int nvmlDeviceGetMemoryLimits_v1(void* handle, MemoryLimits* into) {
  if (users == 0) return uninitialised;
  WholeDevice whole;
  if (handle == nullptr || into == nullptr || into->cgroup == nullptr || is_whole(handle) ||
      cuSimulatedGpuWhole(device_of(handle), &whole) == kNoSuchDevice)
    return invalid_argument;
  if (whole.is_sliced) return not_supported;
  if (own_cgroup().empty() || into->cgroup != own_cgroup()) return not_found;
  into->soft = 0;
  into->hard = whole.cgroup_limit_bytes != 0 ? whole.cgroup_limit_bytes : ~0ull;
  into->used = whole.cgroup_used_bytes;
  return success;
}

NVML_EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count,
                                                        ProcessInfo* into) {
  return list_processes(handle, count, into);
}

NVML_EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(void* handle, unsigned* count,
                                                         ProcessInfo* into) {
  if (users == 0) return uninitialised;
  if (handle == nullptr || count == nullptr || (*count != 0 && into == nullptr))
    return invalid_argument;
  *count = 0;
  return success;
}
