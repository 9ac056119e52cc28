// The numbers are offsetof() of CPython's own headers: 3.9.18, 3.10.13, 3.11.7, 3.12.1, 3.13.0.
#include "runtime_hooks/stacks/python/layout.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace cuwarden::stacks::python {
namespace {

constexpr Layout layouts[] = {
    {.version = 0x0309,
     .state_thread = 176,
     .state_frame = 24,
     .state_cframe = Layout::none,
     .cframe_frame = Layout::none,
     .cframe_previous = Layout::none,
     .frame_previous = 24,
     .frame_code = 32,
     .frame_instruction = 104,
     .frame_is_entry = Layout::none,
     .frame_owner = Layout::none,
     .code_file = 104,
     .code_name = 112,
     .code_first_line = 40,
     .code_lines = 120,
     .code_instructions = 48,
     .code_version = Layout::none,
     .ascii_characters = 48,
     .other_characters = 72,
     .lines = LineTable::pairs},
    {.version = 0x030a,
     .state_thread = 176,
     .state_frame = 24,
     .state_cframe = 48,
     .cframe_frame = Layout::none,
     .cframe_previous = 8,
     .frame_previous = 24,
     .frame_code = 32,
     .frame_instruction = 96,
     .frame_is_entry = Layout::none,
     .frame_owner = Layout::none,
     .code_file = 104,
     .code_name = 112,
     .code_first_line = 40,
     .code_lines = 120,
     .code_instructions = 48,
     .code_version = Layout::none,
     .ascii_characters = 48,
     .other_characters = 72,
     .lines = LineTable::ranges},
    {.version = 0x030b,
     .state_thread = 152,
     .state_frame = Layout::none,
     .state_cframe = 56,
     .cframe_frame = 8,
     .cframe_previous = 16,
     .frame_previous = 48,
     .frame_code = 32,
     .frame_instruction = 56,
     .frame_is_entry = 68,
     .frame_owner = Layout::none,
     .code_file = 112,
     .code_name = 128,
     .code_first_line = 72,
     .code_lines = 136,
     .code_instructions = 184,
     .code_version = Layout::none,
     .ascii_characters = 48,
     .other_characters = 72,
     .lines = LineTable::locations},
    {.version = 0x030c,
     .state_thread = 136,
     .state_frame = Layout::none,
     .state_cframe = 56,
     .cframe_frame = 0,
     .cframe_previous = 8,
     .frame_previous = 8,
     .frame_code = 0,
     .frame_instruction = 56,
     .frame_is_entry = Layout::none,
     .frame_owner = 70,
     .code_file = 112,
     .code_name = 128,
     .code_first_line = 68,
     .code_lines = 136,
     .code_instructions = 192,
     .code_version = 92,
     .ascii_characters = 40,
     .other_characters = 56,
     .lines = LineTable::locations},
    {.version = 0x030d,
     .state_thread = 152,
     .state_frame = 72,
     .state_cframe = Layout::none,
     .cframe_frame = Layout::none,
     .cframe_previous = Layout::none,
     .frame_previous = 8,
     .frame_code = 0,
     .frame_instruction = 56,
     .frame_is_entry = Layout::none,
     .frame_owner = 70,
     .code_file = 112,
     .code_name = 128,
     .code_first_line = 68,
     .code_lines = 136,
     .code_instructions = 200,
     .code_version = 92,
     .ascii_characters = 40,
     .other_characters = 56,
     .lines = LineTable::locations},
};

// From 3.13 on, the interpreter describes itself at the start of _PyRuntime (_Py_DebugOffsets).
struct Description {
  char cookie[8];  // "xdebugpy"
  std::uint64_t version, free_threaded;
};
constexpr std::uint32_t first_described = 0x030d;

bool is_usual_build(const void* runtime) noexcept {
  Description described;
  std::memcpy(&described, runtime, sizeof described);
  return std::memcmp(described.cookie, "xdebugpy", sizeof described.cookie) == 0 &&
         described.free_threaded == 0;
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
  if (version >= first_described &&
      (symbols.runtime == nullptr || !is_usual_build(symbols.runtime)))
    return nullptr;
  return found;
}

}  // namespace cuwarden::stacks::python
