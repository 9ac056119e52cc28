// Writes images of an interpreter's memory: the bytes that the reading of Python frames needs.
//
// An image is a text. Each line is a word and its values. `version` is that of the interpreter,
// such as 0x30e for 3.14. `thread` is the thread's id, as pthread_self() has it. `state`,
// `code_type`, `text_type`, `bytes_type` and `runtime` are addresses of the thread's state, of
// types, and of _PyRuntime. `frame` is an expected frame, innermost first: name, first line,
// instruction. `memory` is an address, and the bytes from there on in hexadecimal.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "runtime_hooks/stacks/python/interpreter.hpp"
#include "runtime_hooks/stacks/python/object_fields.hpp"

namespace cuwarden::stacks::python::test {

// Writes the image of one thread of an interpreter.
class ImageWriter {
 public:
  // `path`: the file, which is overwritten. The interpreter must outlive the object.
  ImageWriter(const std::string& path, const Interpreter& interpreter)
      : file_(path), interpreter_(interpreter), layout_(interpreter.layout()) {}
  // Writes the image of the calling thread, once; the file is complete when the object ends.
  // `state`: Interpreter::state_of_thread(). `chain`: the frames that read() gave. `frames`: the
  // frames that are expected, a line for each.
  void write(std::uint64_t state, const FrameChain& chain, const std::string& frames) {
    constexpr std::uint64_t state_bytes = 192, description_bytes = 648;
    const PythonSymbols& symbols = interpreter_.symbols();
    number("version", layout_.version);
    number("thread", pthread_self());
    number("state", state);
    number("code_type", reinterpret_cast<std::uint64_t>(symbols.code_type));
    number("text_type", reinterpret_cast<std::uint64_t>(symbols.text_type));
    number("bytes_type", reinterpret_cast<std::uint64_t>(symbols.bytes_type));
    number("runtime", reinterpret_cast<std::uint64_t>(symbols.runtime));
    std::istringstream lines(frames);
    for (std::string line; std::getline(lines, line);) file_ << "frame " << line << '\n';
    memory(state, state_bytes);
    if (layout_.version >= 0x030d)
      memory(reinterpret_cast<std::uint64_t>(symbols.runtime), description_bytes);
    write_frames(state, chain.count);
    for (std::uint32_t i = 0; i < chain.count; ++i) write_code(chain.frames[i].code);
  }

 private:
  // Writes a line with a word and a number in hexadecimal.
  void number(const char* name, std::uint64_t value) {
    file_ << name << " 0x" << std::hex << value << '\n';
  }
  // Writes the bytes from the address on, unless they were written before.
  void memory(std::uint64_t address, std::uint64_t bytes) {
    if (!written_.insert(address).second) return;
    static constexpr char digits[] = "0123456789abcdef";
    file_ << "memory 0x" << std::hex << address << ' ';
    for (std::uint64_t i = 0; i < bytes; ++i) {
      const auto byte = at<std::uint8_t>(address + i);
      file_ << digits[byte >> 4] << digits[byte & 15];
    }
    file_ << '\n';
  }
  // Writes the memory of the thread's `frames` frames, and of its CFrames in versions that have
  // them. CPython 3.10 has a CFrame for each frame, and one more, whose link is not initialised.
  void write_frames(std::uint64_t state, std::uint32_t frames) {
    constexpr std::uint64_t frame_bytes = 112, cframe_bytes = 32;
    std::uint64_t frame = 0;
    if (layout_.has_cframes()) {
      auto cframe = at<std::uint64_t>(state + layout_.state_cframe);
      if (layout_.cframe_frame != Layout::none)
        frame = at<std::uint64_t>(cframe + layout_.cframe_frame);
      for (std::uint32_t left = frames + 1; cframe != 0 && left != 0; --left) {
        memory(cframe, cframe_bytes);
        if (left != 1) cframe = at<std::uint64_t>(cframe + layout_.cframe_previous);
      }
    }
    if (layout_.state_frame != Layout::none) frame = at<std::uint64_t>(state + layout_.state_frame);
    for (; frame != 0; frame = at<std::uint64_t>(frame + layout_.frame_previous))
      memory(frame, frame_bytes);
  }
  // Writes the memory of a code object, and of the file name, name and line table that it refers
  // to.
  void write_code(std::uint64_t code) {
    memory(code, layout_.code_bytes());
    for (const std::uint16_t field : {layout_.code_file, layout_.code_name}) {
      const auto text = at<std::uint64_t>(code + field);
      const Characters characters = characters_of(text, layout_);
      memory(text, characters.start + characters.count * characters.bytes_each - text);
    }
    const auto lines = at<std::uint64_t>(code + layout_.code_lines);
    memory(lines, bytes_start + at<std::uint64_t>(lines + object_length));
  }

  std::ofstream file_;
  // Start addresses of the blocks of memory that the image has already. No block is written twice.
  std::set<std::uint64_t> written_;
  const Interpreter& interpreter_;
  const Layout& layout_;
};

}  // namespace cuwarden::stacks::python::test
