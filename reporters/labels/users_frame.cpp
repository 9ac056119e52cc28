#include "reporters/labels/users_frame.hpp"

#include <algorithm>

#include "reporters/owners/short_names.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {

std::optional<std::size_t> users_frame(std::span<const NamedFrame> frames) {
  const auto index_of = [&](const auto& is_wanted) -> std::optional<std::size_t> {
    const auto found = std::ranges::find_if(frames, is_wanted);
    if (found == frames.end()) return std::nullopt;
    return static_cast<std::size_t>(found - frames.begin());
  };
  // Code that was compiled at run time may have an address only, which tells a person nothing.
  const auto is_own = index_of([](const NamedFrame& frame) {
    return frame.library.empty() && (frame.module != 0 || !frame.function.empty());
  });
  if (is_own) return is_own;
  // PyTorch runs backward passes in threads of its own. The operation tells a person more than the
  // allocator does.
  const auto is_backward = index_of([](const NamedFrame& frame) {
    return frame.function.find("::autograd::") != frame.function.npos &&
           frame.function.find("Backward") != frame.function.npos;
  });
  if (is_backward) return is_backward;
  return index_of([](const NamedFrame& frame) { return frame.library != cuda_library; });
}

std::optional<std::string> users_location(std::span<const NamedFrame> frames) {
  const auto users = users_frame(frames);
  return users ? std::optional(location_text(frames[*users])) : std::nullopt;
}

std::string location_text(const NamedFrame& frame) {
  const std::string function = short_name(frame.function);
  if (!frame.file.empty()) {
    std::string location(frame.file);
    if (frame.line != 0) location += ":" + std::to_string(frame.line);
    return function.empty() ? location : location + " in " + function;
  }
  const std::string_view module = file_name(frame.path);
  if (!function.empty()) return module.empty() ? function : function + " in " + std::string(module);
  if (module.empty()) return "code at " + address_text(frame.offset);
  return std::string(module) + "+" + address_text(frame.offset);
}

std::string short_location_text(NamedFrame frame) {
  frame.file = file_name(frame.file);
  return location_text(frame);
}

}  // namespace cuwarden
