#include "shim/probes/nvml_memory.hpp"

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "shim/probes/nvml.hpp"

namespace cuwarden::shim {
namespace {

enum class Of { itself, its_whole };

std::optional<NvmlMemory> read(std::span<const char, 16> uuid, const char* library,
                               Of of) noexcept {
  const ErrnoGuard guard;
  const Uncancelled keep;
  Nvml nvml(library);
  if (nvml.answer() != NvmlAnswer::listed) return std::nullopt;
  struct Memory {  // nvmlMemory_t
    unsigned long long total, free, used;
  };
  const auto memory_of = nvml.find<int (*)(NvmlDevice, Memory*)>("nvmlDeviceGetMemoryInfo");
  NvmlDevice device = memory_of != nullptr ? nvml.device(uuid) : nullptr;
  if (device == nullptr) return std::nullopt;
  if (of == Of::its_whole) {
    const auto whole_of =
        nvml.find<int (*)(NvmlDevice, NvmlDevice*)>("nvmlDeviceGetDeviceHandleFromMigDeviceHandle");
    if (whole_of == nullptr || whole_of(device, &device) != 0) return std::nullopt;
  }
  Memory memory{};
  if (memory_of(device, &memory) != 0) return std::nullopt;
  return NvmlMemory{memory.total, memory.free};
}

}  // namespace

std::optional<NvmlMemory> read_nvml_memory(std::span<const char, 16> uuid,
                                           const char* library) noexcept {
  return read(uuid, library, Of::itself);
}

std::optional<NvmlMemory> read_nvml_memory_of_whole(std::span<const char, 16> uuid,
                                                    const char* library) noexcept {
  return read(uuid, library, Of::its_whole);
}

}  // namespace cuwarden::shim
