// A fake NVML. FAKE_NVML_VERSION chooses the functions that it has.
#include "tests/unit/shim/fake_nvml.hpp"

#include <cstring>

FakeNvml fake_nvml;

namespace {

constexpr int not_found = 6, insufficient_size = 7;

[[maybe_unused]] int list(const FakeNvml::Process* processes, unsigned count, int result,
                          unsigned declared_bytes, unsigned* room, void* into) {
  if (result != 0) return result;
  const unsigned given = *room;
  *room = count;
  if (count > given) return insufficient_size;
  auto* at = static_cast<unsigned char*>(into);
  if (fake_nvml.clears_all) std::memset(at, 0, std::size_t{given} * declared_bytes);
  const unsigned bytes = fake_nvml.entry_bytes != 0 ? fake_nvml.entry_bytes : declared_bytes;
  for (unsigned i = 0; i < count; ++i, at += bytes) {
    FakeNvml::Process process{1000 + i, 1ull + i};
    if (count <= FakeNvml::most) process = processes[i];
    std::memset(at, 0xff, bytes);
    std::memcpy(at, &process.pid, sizeof process.pid);
    std::memcpy(at + 8, &process.used_bytes, sizeof process.used_bytes);
  }
  return 0;
}

[[maybe_unused]] int result_of(int result, int version) {
  return version == FAKE_NVML_VERSION && fake_nvml.newest_result != 0 ? fake_nvml.newest_result
                                                                      : result;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  if (fake_nvml.init_result == 0) ++fake_nvml.inits;
  return fake_nvml.init_result;
}

int nvmlShutdown() {
  ++fake_nvml.shutdowns;
  return 0;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  if (fake_nvml.known_uuid == nullptr || std::strcmp(uuid, fake_nvml.known_uuid) != 0)
    return not_found;
  *handle = &fake_nvml;
  return fake_nvml.handle_result;
}

#if FAKE_NVML_VERSION >= 2
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void* slice, void** handle) {
  if (slice != &fake_nvml) return not_found;
  *handle = &fake_nvml.whole_bytes;
  return fake_nvml.whole_result;
}

int nvmlDeviceGetMemoryInfo(void* handle, void* into) {
  const unsigned long long bytes =
      handle == &fake_nvml.whole_bytes ? fake_nvml.whole_bytes : fake_nvml.own_bytes;
  const unsigned long long memory[] = {bytes, bytes / 2, bytes / 2};
  std::memcpy(into, memory, sizeof memory);
  return fake_nvml.memory_result;
}
#endif

#if FAKE_NVML_VERSION >= 3
int nvmlDeviceGetMinorNumber(void*, unsigned* number) {
  *number = static_cast<unsigned>(fake_nvml.file_number);
  return fake_nvml.file_number < 0 ? not_found : 0;
}

struct MemoryLimits {  // nvmlGetMemoryLimits_v1_t
  const char* cgroup;
  unsigned long long soft, hard, used;
};

int nvmlDeviceGetMemoryLimits_v1(void* handle, MemoryLimits* into) {
  if (handle != &fake_nvml) return not_found;
  for (const FakeNvml::Limit& limit : fake_nvml.limits) {
    if (limit.cgroup == nullptr || std::strcmp(limit.cgroup, into->cgroup) != 0) continue;
    into->soft = limit.hard / 2;
    into->hard = limit.hard;
    into->used = limit.used;
    return 0;
  }
  return not_found;
}
#endif

#define LISTS(name, version, bytes)                                                \
  int nvmlDeviceGetCompute##name(void*, unsigned* room, void* into) {              \
    return list(fake_nvml.compute, fake_nvml.compute_count,                        \
                result_of(fake_nvml.compute_result, version), bytes, room, into);  \
  }                                                                                \
  int nvmlDeviceGetGraphics##name(void*, unsigned* room, void* into) {             \
    return list(fake_nvml.graphics, fake_nvml.graphics_count,                      \
                result_of(fake_nvml.graphics_result, version), bytes, room, into); \
  }

#if FAKE_NVML_VERSION >= 1
LISTS(RunningProcesses, 1, 16)
#endif
#if FAKE_NVML_VERSION >= 2
LISTS(RunningProcesses_v2, 2, 24)
#endif
#if FAKE_NVML_VERSION >= 3
LISTS(RunningProcesses_v3, 3, 24)
#endif
}
