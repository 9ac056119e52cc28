// The answers that a test gives to the fake NVML, and the calls that the fake NVML has counted.
#pragma once

#include <dlfcn.h>

// The answers that a test gives to the fake NVML, and the calls that the fake NVML has counted.
// Results are nvmlReturn_t: 0 is success.
struct FakeNvml {
  // A process that NVML lists as a holder of the device's memory.
  struct Process {
    unsigned pid;                   // pid of the process
    unsigned long long used_bytes;  // bytes of the device that it holds
  };
  // Size of the lists `compute` and `graphics`: most processes whose pid and bytes a test can
  // choose.
  static constexpr int most = 4;

  int init_result = 0;  // result of nvmlInit_v2
  // UUID of the only device that NVML knows, as text; null: it knows none.
  const char* known_uuid = nullptr;
  // Result of looking up the known device (nvmlDeviceGetHandleByUUID).
  int handle_result = 0;
  // Result of listing the compute processes.
  int compute_result = 0;
  // Result of listing the graphics processes.
  int graphics_result = 0;
  // Result of the newest version of the functions that list processes; 0: that version answers as
  // older ones do.
  int newest_result = 0;
  // The compute processes; the first `compute_count` are listed.
  Process compute[most] = {};
  // Number of compute processes. If it exceeds `most`, the processes have pids from 1000 on, and 1,
  // 2, 3 and so on bytes.
  unsigned compute_count = 0;
  // The graphics processes; the first `graphics_count` are listed.
  Process graphics[most] = {};
  // Number of graphics processes. If it exceeds `most`, the processes have pids from 1000 on, and
  // 1, 2, 3 and so on bytes.
  unsigned graphics_count = 0;
  // Bytes from one entry to the next in lists of processes; 0: as the called version of the
  // function declares its entries.
  unsigned entry_bytes = 0;
  // True if the whole given buffer is cleared before processes are written to it.
  bool clears_all = false;

  // Result of looking up the device of which the known one is a slice (MIG). 2 is
  // NVML_ERROR_INVALID_ARGUMENT: the known one is no slice.
  int whole_result = 2;
  // Result of asking for a device's memory.
  int memory_result = 0;
  // Bytes of the device of which the known one is a slice (MIG); half of them are free.
  unsigned long long whole_bytes = 0;
  // Bytes of the known device; half of them are free.
  unsigned long long own_bytes = 1;

  // Minor number of the known device (nvmlDeviceGetMinorNumber), as in /dev/nvidia0; -1: the call
  // fails.
  int file_number = -1;
  // A limit of a cgroup on the known device's memory. Asking for a cgroup without a limit fails.
  struct Limit {
    // Path of the cgroup's folder; null: no limit.
    const char* cgroup;
    // The limit in bytes, and the bytes that count towards it.
    unsigned long long hard, used;
  };
  // The limits of cgroups on the known device's memory.
  Limit limits[2] = {};

  int inits = 0;      // number of calls of nvmlInit_v2 that succeeded
  int shutdowns = 0;  // number of calls of nvmlShutdown
};

// The state of the fake NVML, which it exports for tests.
extern "C" FakeNvml fake_nvml;

// UUID of a device as CUDA gives it: 16 bytes, with a null character behind them. Some of the bytes
// are no letters or digits.
constexpr char device_uuid[] = "\x01\x23\x45\x67\x89\xab\xcd\xef simdev\xff";
static_assert(sizeof device_uuid == 16 + 1);
// Texts by which NVML knows the device of this UUID, as a whole device and as a slice (MIG).
constexpr char gpu_text[] = "GPU-01234567-89ab-cdef-2073-696d646576ff";
constexpr char mig_text[] = "MIG-01234567-89ab-cdef-2073-696d646576ff";

// Loads a fake NVML, which stays loaded, and resets its answers: the device `uuid` (text) is known,
// and no process uses it. Returns the answers, which belong to the library; null if the library
// cannot be loaded. `library`: path of its file.
inline FakeNvml* load_fake_nvml(const char* library, const char* uuid) {
  void* const loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  auto* const fake =
      loaded == nullptr ? nullptr : static_cast<FakeNvml*>(dlsym(loaded, "fake_nvml"));
  if (fake == nullptr) return nullptr;
  *fake = FakeNvml{};
  fake->known_uuid = uuid;
  return fake;
}
