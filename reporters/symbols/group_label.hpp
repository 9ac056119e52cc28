// Names the call and the module of a group of allocations, by the frames of its call stack.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cuwarden {

// The name of a group of allocations for people: the call, and the module that made it.
struct GroupLabel {
  std::string api;           // function that the program called, such as cudaMalloc
  std::uint32_t module = 0;  // module of the innermost frame outside CUDA's libraries; 0: unknown
};

// A frame with the names that are known of it; unknown ones are empty.
struct NamedFrame {
  std::uint32_t module = 0;  // row of the module; 0: the frame lies in no known module
  std::string_view path, function;
  std::string_view file{};  // source file; empty: unknown
};

// Returns the label of an allocation. `recorded_api`: name of the hook that recorded it. `frames`:
// its stack, innermost first. If the call went through a runtime function without a hook (a static
// libcudart, or a pointer from a lookup), only the driver's function was recorded. Then the label
// has the outermost of the runtime's functions at the inner end of the stack.
GroupLabel label_group(std::string_view recorded_api, std::span<const NamedFrame> frames);

}  // namespace cuwarden
