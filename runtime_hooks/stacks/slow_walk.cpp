#include "runtime_hooks/stacks/slow_walk.hpp"

#include <unwind.h>

#include "runtime_hooks/stacks/own_code.hpp"

namespace cuwarden::stacks {
namespace {

struct Walk {
  std::span<std::uint64_t> frames;
  std::size_t count = 0;
  bool truncated = false;
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* argument) {
  auto& walk = *static_cast<Walk*>(argument);
  int before_instruction = 0;
  const _Unwind_Ptr ip = _Unwind_GetIPInfo(context, &before_instruction);
  if (ip == 0) return _URC_END_OF_STACK;
  const std::uint64_t address = before_instruction ? ip : ip - 1;
  if (is_own(address)) return _URC_NO_REASON;
  if (walk.count == walk.frames.size()) {
    walk.truncated = true;
    return _URC_END_OF_STACK;
  }
  walk.frames[walk.count++] = address;
  return _URC_NO_REASON;
}

}  // namespace

Captured walk_slowly(std::span<std::uint64_t> frames) noexcept {
  if (frames.empty()) return {0, true};
  Walk walk{.frames = frames};
  _Unwind_Backtrace(visit, &walk);
  return {walk.count, walk.truncated};
}

}  // namespace cuwarden::stacks
