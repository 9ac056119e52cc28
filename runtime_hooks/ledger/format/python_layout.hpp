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
  std::uint32_t first_line;          // line with which the function begins
  // Format of `lines`: 0 for that of Python 3.9, 1 for that of 3.10, 2 for that of later versions.
  std::uint32_t lines_format;
  std::uint32_t reserved;
  StringRef file;      // path of the source file, as Python knows it, in UTF-8
  StringRef function;  // qualified name of the function, in UTF-8; before 3.11 the plain name
  StringRef lines;     // bytes that map the function's instructions to lines
};

// A frame of a stack stands for an instruction of a Python function if its uppermost bit is set,
// which no address of a program has. The next 39 bits are the row of the table of Python functions,
// the lower 24 the number of the instruction: of units of two bytes from the start of the bytecode.
inline constexpr std::uint64_t python_frame_bit = std::uint64_t{1} << 63;
inline constexpr unsigned python_instruction_bits = 24;
inline constexpr std::uint64_t most_python_instructions = std::uint64_t{1}
                                                          << python_instruction_bits;

// Returns the value that stands for the instruction of the Python function with this row; row 0
// means a function that is not known. An instruction that is too large for its 24 bits counts as
// the largest number that they hold.
constexpr std::uint64_t python_frame(std::uint32_t row, std::uint64_t instruction) noexcept {
  const std::uint64_t number =
      instruction < most_python_instructions ? instruction : most_python_instructions - 1;
  return python_frame_bit | std::uint64_t{row} << python_instruction_bits | number;
}
// True if the frame of a stack stands for an instruction of a Python function.
constexpr bool is_python_frame(std::uint64_t frame) noexcept {
  return (frame & python_frame_bit) != 0;
}
// Returns the row of the Python function that a Python frame stands for.
constexpr std::uint32_t python_row_of(std::uint64_t frame) noexcept {
  return static_cast<std::uint32_t>((frame & ~python_frame_bit) >> python_instruction_bits);
}
// Returns the number of the instruction that a Python frame stands for.
constexpr std::uint32_t python_instruction_of(std::uint64_t frame) noexcept {
  return static_cast<std::uint32_t>(frame & (most_python_instructions - 1));
}

}  // namespace cuwarden::ledger
