#include "reporters/labels/group_label.hpp"

#include "reporters/owners/cuda_frames.hpp"

namespace cuwarden {

GroupLabel label_group(std::string_view recorded_api, std::span<const NamedFrame> frames) {
  GroupLabel label;
  label.api = recorded_api;
  for (const NamedFrame& frame : frames) {
    if (frame.module == 0) continue;
    if (frame.library != cuda_library) {
      label.module = frame.module;
      break;
    }
    const std::string_view entry = runtime_entry(frame.function);
    if (!entry.empty() && is_driver_api(recorded_api)) label.api = entry;
  }
  return label;
}

}  // namespace cuwarden
