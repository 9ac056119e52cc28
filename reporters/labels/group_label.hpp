// Names a group of allocations for people: the CUDA function that was called, and the module that
// called it, by the frames of the group's call stack.
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
  // Number (NamedFrame::module) of the module that called `api`: the one of the innermost frame
  // outside CUDA's libraries. 0: unknown.
  std::uint32_t module = 0;
};

// Returns the label of a group of allocations: the CUDA function and the module that called it.
// `recorded_api`: the CUDA function whose hook recorded the allocations; empty: unknown. `frames`:
// their call stack, innermost first.
//
// If the program called a runtime function that no hook saw (of a static libcudart, or by a pointer
// from a lookup), only the driver function inside was recorded. The label then has the outermost
// runtime function among the frames inside CUDA.
GroupLabel label_group(std::string_view recorded_api, std::span<const NamedFrame> frames);

}  // namespace cuwarden
