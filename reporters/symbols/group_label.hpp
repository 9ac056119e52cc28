// Names the call and the module of a group of allocations, by the frames of its call stack.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cuwarden {

struct GroupLabel {
  std::string api;           // as the program called it
  std::uint32_t module = 0;  // of the innermost frame outside CUDA's own libraries; 0: unknown
};

struct NamedFrame {
  std::uint32_t module = 0;  // 0: in no module that is known
  std::string_view path, function;
  std::string_view file{};  // of the source; empty: unknown
};

// `frames` innermost first. A call that the program made into the runtime was recorded under the
// driver's name where no runtime hook saw it (a runtime linked statically, a pointer that was
// looked up): then the outermost runtime function at the inner end of the stack names it.
GroupLabel label_group(std::string_view recorded_api, std::span<const NamedFrame> frames);

}  // namespace cuwarden
