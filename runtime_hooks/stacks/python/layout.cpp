#include "runtime_hooks/stacks/python/layout.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>
#include <string_view>

namespace cuwarden::stacks::python {
namespace {

// From 3.13 on, the interpreter describes itself at the start of _PyRuntime (_Py_DebugOffsets): a
// cookie, and then numbers of 64 bits, most of them positions of fields.
constexpr std::string_view cookie = "xdebugpy";
constexpr std::size_t free_threaded = 2;  // index of the number that is 0 in a build with a lock

// A position in the description, as an index of numbers, and the field of `Layout` that it tells.
struct Described {
  std::uint16_t index;
  std::uint16_t Layout::*field;
};
// The indexes are offsetof() of CPython's own headers, divided by 8: 3.13.0 and 3.14.10.
constexpr Described described_3_13[] = {
    {23, &Layout::state_frame},       {24, &Layout::state_thread},
    {29, &Layout::frame_previous},    {30, &Layout::frame_code},
    {31, &Layout::frame_instruction}, {33, &Layout::frame_owner},
    {35, &Layout::code_file},         {37, &Layout::code_name},
    {38, &Layout::code_lines},        {39, &Layout::code_first_line},
    {43, &Layout::code_instructions}, {70, &Layout::ascii_characters},
};
constexpr Described described_3_14[] = {
    {26, &Layout::state_frame},       {27, &Layout::state_thread},
    {32, &Layout::frame_previous},    {33, &Layout::frame_code},
    {34, &Layout::frame_instruction}, {36, &Layout::frame_owner},
    {40, &Layout::code_file},         {42, &Layout::code_name},
    {43, &Layout::code_lines},        {44, &Layout::code_first_line},
    {48, &Layout::code_instructions}, {80, &Layout::ascii_characters},
};

constexpr std::span<const Described> description_of(std::uint32_t version) noexcept {
  switch (version) {
    case 0x030d:
      return described_3_13;
    case 0x030e:
      return described_3_14;
    default:
      return {};
  }
}

constexpr std::uint32_t first_described = 0x030d;
static_assert(std::ranges::all_of(layouts, [](const Layout& layout) {
  return layout.version < first_described || !description_of(layout.version).empty();
}));

// True if the interpreter describes itself as the layout does.
bool agrees(const void* runtime, const Layout& layout) noexcept {
  const auto number = [&](std::size_t index) {
    std::uint64_t value;
    std::memcpy(&value, static_cast<const char*>(runtime) + index * sizeof value, sizeof value);
    return value;
  };
  if (std::memcmp(runtime, cookie.data(), cookie.size()) != 0 || number(free_threaded) != 0)
    return false;
  return std::ranges::all_of(description_of(layout.version), [&](const Described& position) {
    return number(position.index) == layout.*position.field;
  });
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
  const bool describes_itself = !description_of(version).empty();
  if (describes_itself && (symbols.runtime == nullptr || !agrees(symbols.runtime, *found)))
    return nullptr;
  return found;
}

}  // namespace cuwarden::stacks::python
