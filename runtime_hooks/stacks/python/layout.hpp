// Positions of the fields of CPython's structures from which Python frames are read. They differ
// between the versions 3.9 to 3.14, and do not change within one of them.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/python_symbols.hpp"

namespace cuwarden::stacks::python {

// Formats of the table that maps instructions of a code object to source lines.
enum class LineTable : std::uint32_t {
  pairs,      // Python 3.9 (co_lnotab) has pairs: a step in bytecode, and a signed step in lines.
  ranges,     // Python 3.10 (co_linetable) has pairs for ranges of bytecode, some without a line.
  locations,  // Later versions (co_linetable) have entries of variable length, with columns.
};

// Positions of fields in the structures of one version of CPython, in bytes from the start of the
// structure. The fields that have the same value in all versions from 3.11 on begin with it.
struct Layout {
  static constexpr std::uint16_t none = UINT16_MAX;  // the version has no such field

  // The interpreter's version, such as 0x030c for 3.12.
  std::uint32_t version = 0;

  // Positions in PyThreadState, in bytes: `state_thread` is that of the thread's id, as
  // pthread_self() has it. `state_frame` is that of the pointer to the innermost frame; none in
  // 3.11 and 3.12, where the CFrame has it.
  std::uint16_t state_thread = 0, state_frame = none;
  // Position in PyThreadState, in bytes, of the pointer to the innermost CFrame. A CFrame lies on
  // the C stack of the function that runs the innermost Python frames. `none` unless the version is
  // 3.10 to 3.12, since others have no CFrames.
  std::uint16_t state_cframe = none;
  // Positions in CFrame, in bytes, of the pointers to its innermost Python frame and to the next
  // outer CFrame. `none` in versions that have no CFrames. In 3.10, only `cframe_frame` is none.
  std::uint16_t cframe_frame = none, cframe_previous = none;

  // Positions in the Python frame, in bytes: of the pointers to the next outer frame and to the
  // code object, and of the instruction that was reached. The instruction is an int before 3.11: a
  // number of bytes in 3.9, of units of two bytes in 3.10; -1 before the first one. From 3.11 on,
  // it is an address in the bytecode.
  std::uint16_t frame_previous = 0, frame_code = 0, frame_instruction = 56;
  // Mask of the bits in a frame's pointer to its code object that are no part of the address; 0
  // before 3.14.
  std::uint16_t code_tag = 0;
  // Position in the Python frame, in bytes, of a byte that is nonzero if C code has entered the
  // frame. `none` in versions other than 3.11.
  std::uint16_t frame_is_entry = none;
  // Position in the Python frame, in bytes, of a byte that says where the frame lies; `none` before
  // 3.11. If the byte is `owned_by_c_stack` or more, the frame is no Python code. It then lies on
  // the C stack of the function that runs the next inner frames.
  std::uint16_t frame_owner = none;

  // Positions in PyCodeObject, in bytes: of the file name, the function's name, the first line, and
  // the table of lines.
  std::uint16_t code_file = 112, code_name = 128, code_first_line = 0, code_lines = 136;
  // Position in PyCodeObject, in bytes, of the bytecode: from 3.11 on an array, before that a
  // pointer to a bytes object.
  std::uint16_t code_instructions = 0;
  // Position in PyCodeObject, in bytes, of the number of an instruction; `none` before 3.11. A
  // frame that has not reached this instruction has not begun, and Python does not show it.
  std::uint16_t code_first_shown = none;
  // Position in PyCodeObject, in bytes, of a number that no other code object of the interpreter
  // has, unless it is 0. Sub-interpreters have numbers of their own. `none` before 3.12.
  std::uint16_t code_version = none;

  // Bytes before the characters of a str object: `ascii_characters` if all are ASCII, otherwise
  // `other_characters`.
  std::uint16_t ascii_characters = 0, other_characters = 0;
  LineTable lines = LineTable::locations;  // format of the table of lines

  static constexpr std::uint8_t owned_by_generator = 1, owned_by_c_stack = 3;

  // Returns the bytes from the start of a code object to the end of the last field that is read.
  constexpr std::uint64_t code_bytes() const noexcept {
    return (code_lines > code_instructions ? code_lines : code_instructions) + 8u;
  }
  // True if each C function that runs Python frames has a CFrame on its stack: 3.10 to 3.12. The
  // CFrame shows which thread runs the innermost frame.
  constexpr bool has_cframes() const noexcept { return state_cframe != none; }
  // True if frames are PyFrameObjects, one for each C function that runs one: before 3.11. From
  // 3.11 on, a C function may run several frames.
  constexpr bool has_frame_objects() const noexcept { return version < 0x030b; }
};

// The layouts of the versions that can be read. The numbers are offsetof() of CPython's own
// headers: 3.9.18, 3.10.13, 3.11.7, 3.12.1, 3.13.0, 3.14.10. A row leaves out fields that its
// version does not have, and those whose default value in Layout is right.
inline constexpr Layout layouts[] = {
    {.version = 0x0309,
     .state_thread = 176,
     .state_frame = 24,
     .frame_previous = 24,
     .frame_code = 32,
     .frame_instruction = 104,
     .code_file = 104,
     .code_name = 112,
     .code_first_line = 40,
     .code_lines = 120,
     .code_instructions = 48,
     .ascii_characters = 48,
     .other_characters = 72,
     .lines = LineTable::pairs},
    {.version = 0x030a,
     .state_thread = 176,
     .state_frame = 24,
     .state_cframe = 48,
     .cframe_previous = 8,
     .frame_previous = 24,
     .frame_code = 32,
     .frame_instruction = 96,
     .code_file = 104,
     .code_name = 112,
     .code_first_line = 40,
     .code_lines = 120,
     .code_instructions = 48,
     .ascii_characters = 48,
     .other_characters = 72,
     .lines = LineTable::ranges},
    {.version = 0x030b,
     .state_thread = 152,
     .state_cframe = 56,
     .cframe_frame = 8,
     .cframe_previous = 16,
     .frame_previous = 48,
     .frame_code = 32,
     .frame_is_entry = 68,
     .frame_owner = 69,
     .code_first_line = 72,
     .code_instructions = 184,
     .code_first_shown = 168,
     .ascii_characters = 48,
     .other_characters = 72},
    {.version = 0x030c,
     .state_thread = 136,
     .state_cframe = 56,
     .cframe_frame = 0,
     .cframe_previous = 8,
     .frame_previous = 8,
     .frame_code = 0,
     .frame_owner = 70,
     .code_first_line = 68,
     .code_instructions = 192,
     .code_first_shown = 176,
     .code_version = 92,
     .ascii_characters = 40,
     .other_characters = 56},
    {.version = 0x030d,
     .state_thread = 152,
     .state_frame = 72,
     .frame_previous = 8,
     .frame_code = 0,
     .frame_owner = 70,
     .code_first_line = 68,
     .code_instructions = 200,
     .code_first_shown = 184,
     .code_version = 92,
     .ascii_characters = 40,
     .other_characters = 56},
    {.version = 0x030e,
     .state_thread = 152,
     .state_frame = 72,
     .frame_previous = 8,
     .frame_code = 0,
     .code_tag = 1,
     .frame_owner = 74,
     .code_first_line = 68,
     .code_instructions = 208,
     .code_first_shown = 192,
     .code_version = 92,
     .ascii_characters = 40,
     .other_characters = 56},
};

// Position of the type in PyObject, in bytes. Like the positions below, it is equal in all
// versions.
inline constexpr std::uint16_t object_type = 8;
// Position of the number of items in PyVarObject and PyASCIIObject, in bytes.
inline constexpr std::uint16_t object_length = 16;
// Position of the first byte of the contents in PyBytesObject, in bytes.
inline constexpr std::uint16_t bytes_start = 32;
// Position in PyASCIIObject, in bytes, of the hash of the text. All bits of the hash are set if the
// text was not hashed yet.
inline constexpr std::uint16_t text_hash = 24;
// Position in PyASCIIObject, in bytes, of bits that describe the text. They say how many bytes each
// character takes, and if all characters are ASCII.
inline constexpr std::uint16_t text_state = 32;

// Returns the layout of the interpreter with these symbols, one of `layouts`. Returns null if its
// version is not known, or if its own description of its structures (3.13 and later) differs from
// the layout. Returns null, too, if it was built without a global lock (free-threaded), where code
// objects look different.
const Layout* layout_of(const PythonSymbols&) noexcept;
// Returns the interpreter's version, such as 0x030e for 3.14; 0 if it is older than 3.9.
std::uint32_t version_of(const PythonSymbols&) noexcept;

}  // namespace cuwarden::stacks::python
