// Text of Python frames, for comparison with that of text_of_frames() in call_ways.py.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime_hooks/stacks/python/interpreter.hpp"

namespace cuwarden::stacks::python::test {

// Returns a line for each frame of the chain, innermost first: name of the function, its first
// line, index of the instruction. The innermost frame has "-" for the instruction, since it
// executes more of them before the chain is read. Adds the file of each function and a line break
// to `files` if this is not null. Returns null if a function cannot be read.
inline std::optional<std::string> text_of_frames(const Interpreter& interpreter,
                                                 const FrameChain& chain,
                                                 std::string* files = nullptr) {
  std::string text;
  const auto contents = std::make_unique<CodeContents>();
  for (std::uint32_t i = 0; i < chain.count; ++i) {
    const PythonFrame& frame = chain.frames[i];
    if (!interpreter.read_code(frame.code, *contents)) return std::nullopt;
    text += std::string(contents->name) + ' ' + std::to_string(contents->first_line) + ' ' +
            (i == 0 ? "-" : std::to_string(interpreter.instruction_of(frame))) + '\n';
    if (files != nullptr) *files += std::string(contents->file) + '\n';
  }
  return text;
}

}  // namespace cuwarden::stacks::python::test
