// Walks the stack with _Unwind_Backtrace.
#include "runtime_hooks/stacks/capture.hpp"

#include <unwind.h>

// The linker's own symbols: where this object begins and ends in memory.
extern "C" {
extern const char __ehdr_start __attribute__((visibility("hidden")));
extern const char _end __attribute__((visibility("hidden")));
}

namespace cuwarden::stacks {
namespace {

struct Walk {
  std::span<std::uint64_t> frames;
  std::size_t count = 0;
  bool truncated = false;
};

bool is_own(std::uint64_t address) {
  return address >= reinterpret_cast<std::uint64_t>(&__ehdr_start) &&
         address < reinterpret_cast<std::uint64_t>(&_end);
}

_Unwind_Reason_Code visit(_Unwind_Context* context, void* argument) {
  auto& walk = *static_cast<Walk*>(argument);
  int before_instruction = 0;
  const _Unwind_Ptr ip = _Unwind_GetIPInfo(context, &before_instruction);
  if (ip == 0) return _URC_END_OF_STACK;
  const std::uint64_t address = before_instruction ? ip : ip - 1;
  // The innermost frames, and our cudaMalloc between the program and its cudart.
  if (is_own(address)) return _URC_NO_REASON;
  if (walk.count == walk.frames.size()) {
    walk.truncated = true;
    return _URC_END_OF_STACK;
  }
  walk.frames[walk.count++] = address;
  return _URC_NO_REASON;
}

}  // namespace

Captured capture(std::span<std::uint64_t> frames) noexcept {
  if (frames.empty()) return {0, true};
  Walk walk{.frames = frames};
  _Unwind_Backtrace(visit, &walk);
  return {walk.count, walk.truncated};
}

}  // namespace cuwarden::stacks
