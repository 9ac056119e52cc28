#include "runtime_hooks/stacks/python/layout.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <string_view>

namespace cuwarden::stacks::python {
namespace {

// From 3.13 on, the interpreter describes itself at the start of _PyRuntime (_Py_DebugOffsets): a
// cookie, and then numbers of 64 bits, most of them positions of fields.
constexpr std::string_view cookie = "xdebugpy";
constexpr std::size_t free_threaded = 2;  // index of the number that is 0 in a build with a lock

// The positions that are compared, and for each version that describes itself their indexes in the
// description: offsetof() of CPython's own headers, divided by 8 (3.13.0 and 3.14.10).
constexpr std::uint16_t Layout::*described_fields[] = {
    &Layout::state_frame,     &Layout::state_thread,      &Layout::frame_previous,
    &Layout::frame_code,      &Layout::frame_instruction, &Layout::frame_owner,
    &Layout::code_file,       &Layout::code_name,         &Layout::code_lines,
    &Layout::code_first_line, &Layout::code_instructions, &Layout::ascii_characters};
struct Description {
  std::uint32_t version;
  std::array<std::uint16_t, std::size(described_fields)> indexes;
};
constexpr Description descriptions[] = {
    {0x030d, {23, 24, 29, 30, 31, 33, 35, 37, 38, 39, 43, 70}},
    {0x030e, {26, 27, 32, 33, 34, 36, 40, 42, 43, 44, 48, 80}},
};

// Returns the description of a version; null if it does not describe itself.
constexpr const Description* description_of(std::uint32_t version) noexcept {
  const auto* const found = std::ranges::find(descriptions, version, &Description::version);
  return found == std::end(descriptions) ? nullptr : found;
}

constexpr std::uint32_t first_described = 0x030d;
static_assert(std::ranges::all_of(layouts, [](const Layout& layout) {
  return layout.version < first_described || description_of(layout.version) != nullptr;
}));

// True if the interpreter describes itself as the layout does, and as a build with a lock.
bool agrees(const void* runtime, const Layout& layout, const Description& description) noexcept {
  const auto number = [&](std::size_t index) {
    std::uint64_t value;
    std::memcpy(&value, static_cast<const char*>(runtime) + index * sizeof value, sizeof value);
    return value;
  };
  if (std::memcmp(runtime, cookie.data(), cookie.size()) != 0 || number(free_threaded) != 0)
    return false;
  for (std::size_t i = 0; i < description.indexes.size(); ++i)
    if (number(description.indexes[i]) != layout.*described_fields[i]) return false;
  return true;
}

}  // namespace

std::uint32_t version_of(const PythonSymbols& symbols) noexcept {
  if (symbols.version != nullptr) return static_cast<std::uint32_t>(*symbols.version >> 16);
  return symbols.has_iterator_send ? 0x030a : symbols.has_add_type ? 0x0309 : 0;
}

const Layout* layout_of(const PythonSymbols& symbols) noexcept {
  const std::uint32_t version = version_of(symbols);
  const auto* const found = std::ranges::find(layouts, version, &Layout::version);
  if (found == std::end(layouts)) return nullptr;
  if (const Description* const description = description_of(version))
    if (symbols.runtime == nullptr || !agrees(symbols.runtime, *found, *description))
      return nullptr;
  return found;
}

}  // namespace cuwarden::stacks::python
