// Python frames in the ledger: the functions, and the values that stand for frames in stacks.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/ledger/format/string_ref.hpp"

namespace cuwarden::ledger {

// A Python function, as the code object of the interpreter describes it. Functions with equal
// contents have one row.
struct PythonCode {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  std::uint32_t first_line;          // line of `file` with which the function begins
  // Format of `lines`, the bytes that map instructions to lines. 0: that of Python 3.9; 1: that of
  // 3.10; 2: that of later versions.
  std::uint32_t lines_format;
  std::uint32_t reserved;
  StringRef file;      // path of the source file, as Python knows it, in UTF-8
  StringRef function;  // qualified name of the function, in UTF-8; before 3.11 the plain name
  StringRef lines;     // bytes that map the function's instructions to lines
};

// Bit that tells Python frames in a stack (numbers of instructions of Python functions) from
// addresses of code, which never have it. The next 39 bits are the function's row in the table of
// Python functions (PythonCode).
inline constexpr std::uint64_t python_frame_bit = std::uint64_t{1} << 63;
// Number of lower bits of a Python frame that hold its instruction: an index in units of two bytes
// from the start of the function's bytecode.
inline constexpr unsigned python_instruction_bits = 24;
// Number of instructions of a Python function that a Python frame can tell apart.
inline constexpr std::uint64_t most_python_instructions = std::uint64_t{1}
                                                          << python_instruction_bits;

// Returns the Python frame, an entry of a stack, for this instruction of a Python function. `row`:
// row in the table of Python functions; 0: the function is not known. `instruction`: its number in
// the bytecode; above the largest number of 24 bits, it counts as that number.
constexpr std::uint64_t python_frame(std::uint32_t row, std::uint64_t instruction) noexcept {
  const std::uint64_t number =
      instruction < most_python_instructions ? instruction : most_python_instructions - 1;
  return python_frame_bit | std::uint64_t{row} << python_instruction_bits | number;
}
// True if this frame of a stack is an instruction of a Python function, false if it is an address.
constexpr bool is_python_frame(std::uint64_t frame) noexcept {
  return (frame & python_frame_bit) != 0;
}
// Returns the row of a Python frame's function in the table of Python functions; 0: unknown.
// is_python_frame(frame) must be true.
constexpr std::uint32_t python_row_of(std::uint64_t frame) noexcept {
  return static_cast<std::uint32_t>((frame & ~python_frame_bit) >> python_instruction_bits);
}
// Returns the number of a Python frame's instruction, in units of two bytes from the start of the
// function's bytecode. is_python_frame(frame) must be true.
constexpr std::uint32_t python_instruction_of(std::uint64_t frame) noexcept {
  return static_cast<std::uint32_t>(frame & (most_python_instructions - 1));
}

}  // namespace cuwarden::ledger
