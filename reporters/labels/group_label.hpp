// Names a group of allocations for people, by the frames of its call stack: the CUDA function that
// was called, and the module that called it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "reporters/owners/named_frame.hpp"

namespace cuwarden {

// The call that made a group of allocations.
struct GroupLabel {
  std::string api;  // CUDA function that the program called, such as "cudaMalloc"; empty: unknown
  // Number (NamedFrame::module) of the module that called `api`: the module of the innermost frame
  // outside CUDA's libraries. 0: unknown.
  std::uint32_t module = 0;
};

// Returns the label of a group of allocations: the CUDA function and the module that called it.
// `recorded_api`: CUDA function whose hook recorded the allocations; empty: unknown. `frames`: the
// group's call stack, innermost first.
//
// A program may call a runtime function that no hook sees, such as one of a static libcudart. Then
// only the driver function that it calls was recorded. If the frames show such a runtime function,
// the label names it; of several, the outermost one.
GroupLabel label_group(std::string_view recorded_api, std::span<const NamedFrame> frames);

}  // namespace cuwarden
