#include "reporters/labels/library_memory.hpp"

#include <string_view>

#include "reporters/owners/known_libraries.hpp"
#include "reporters/owners/library_reserves.hpp"
#include "reporters/words/printable.hpp"
#include "runtime_hooks/core/caching_allocators.hpp"
#include "runtime_hooks/core/kind.hpp"

namespace cuwarden {
namespace {

// Returns the path of the module that asked for the memory of the stack; empty: unknown.
std::string_view asker_of(const IndexedReport& report, model::MaybeId id) {
  const model::Stack* const stack = report.stack(id);
  if (stack == nullptr) return {};
  for (const model::Id frame_id : stack->frames) {
    const model::Frame* const frame = report.frame(frame_id);
    const model::Module* const module = frame == nullptr ? nullptr : report.module(frame->module);
    if (module != nullptr && !is_between_cuda_and_asker(module->path)) return module->path;
  }
  return {};
}

// True if the framework itself says that it has handed out nothing of its memory on the device.
bool is_idle(const IndexedReport& report, std::string_view framework, model::MaybeId device) {
  bool is_known = false;
  for (const model::Framework& row : report->frameworks) {
    if (row.framework != framework || row.device != device || row.incident) continue;
    if (!row.allocated_bytes || *row.allocated_bytes != 0) return false;
    is_known = true;
  }
  return is_known;
}

}  // namespace

LibraryMemory memory_by_asker(const IndexedReport& report, const model::LeakGroup& group) {
  const std::string_view path = asker_of(report, group.stack);
  if (path.empty() || group.kind == kind_name(Kind::imported)) return {};
  const DeviceOrdinal device =
      group.device ? DeviceOrdinal{static_cast<std::int32_t>(*group.device)} : no_device;
  const LibraryReserve* const reserve = reserve_of(path, Kind::device, device);
  if (is_caching_allocator(path) ||
      (reserve != nullptr && reserve->use == LibraryReserve::Use::handed_out)) {
    const std::string name = library_name(path);
    return {is_idle(report, name, group.device) ? LibraryUse::idle_cache : LibraryUse::cache,
            printable(name)};
  }
  if (reserve == nullptr) return {};
  return {LibraryUse::workspace, std::string(reserve->library)};
}

LibraryMemory library_memory(const IndexedReport& report, const model::LeakGroup& group) {
  // A handle has a few blocks. More of them, or those of a test, may be a leak.
  constexpr std::uint64_t most_blocks = 4;
  LibraryMemory asked = memory_by_asker(report, group);
  if (asked.use == LibraryUse::workspace &&
      (group.growth != "one_time" || group.lost_count.value_or(0) != 0 ||
       group.count.value_or(0) > most_blocks || !group.named_steps.empty()))
    return {};
  return asked;
}

}  // namespace cuwarden
