#include "shim/process/stack_room.hpp"

#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/memory/mapping.hpp"
#include "runtime_hooks/stacks/captured.hpp"
#include "shim/interpose/driver_table.hpp"
#include "shim/support/loaded_objects.hpp"
#include "shim/support/own_stack.hpp"

// The loader's symbol: the stack pointer with which the process began.
extern "C" void* __libc_stack_end;

namespace cuwarden::shim {
namespace {

// libc's code: its lowest address, the address behind its last byte, and the address to which the
// first function of a coroutine (makecontext) returns.
struct LibcCode {
  std::uintptr_t begin = 0, end = 0, coroutine_returns_to = 0;
};
constinit LibcCode libc_code;

// Returns the word on the top of a stack that makecontext() prepares.
std::uintptr_t first_return_address_of_a_coroutine() noexcept {
  alignas(16) char stack[512] = {};
  ucontext_t context{};
  context.uc_stack.ss_sp = stack;
  context.uc_stack.ss_size = sizeof stack;
  makecontext(
      &context, [] {}, 0);
  const auto top = static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
  const auto bottom = reinterpret_cast<std::uintptr_t>(stack);
  if (top < bottom || top + sizeof top > bottom + sizeof stack) return 0;
  return *reinterpret_cast<const std::uintptr_t*>(top);
}

// True if a walk that ended here, at the address before `pc`, has come to the first frame of the
// process or of a thread. libc starts threads by code of its own. The first thread's first frame is
// the program's, and begins where the kernel put the arguments.
bool is_first_frame(std::uint64_t pc, std::uint64_t sp) noexcept {
  // The loader's frame, and the program's before it calls libc.
  constexpr std::uint64_t most_bytes = 256;
  if (pc == libc_code.coroutine_returns_to) return false;
  if (syscall(SYS_gettid) == getpid())
    return reinterpret_cast<std::uint64_t>(__libc_stack_end) + most_bytes - sp <= 2 * most_bytes;
  return pc > libc_code.begin && pc < libc_code.end;
}

// True if the present stack is certainly the thread's own, with room for larger work.
bool is_roomy_own_stack(tracking::CallSites& sites) noexcept {
  const ErrnoGuard keep;
  if (!has_room_here()) return false;
  const PresentFrames frames = present_frames(sites, __builtin_frame_address(0));
  return frames.from_the_beginning && !frames.in_signal_handler;
}

}  // namespace

// The frames are not put on the stack, which may be small. The walk stays on it: a collector that
// stops the thread meanwhile must find the thread's own stack pointer.
PresentFrames present_frames(tracking::CallSites& sites, const void* frame,
                             const void* own_frame) noexcept {
  const Mapping memory = Mapping::anonymous(stacks::depth_limit * sizeof(std::uint64_t));
  if (!memory) return {};
  const std::span frames(static_cast<std::uint64_t*>(memory.data()), stacks::depth_limit);
  const stacks::Captured captured = sites.frames_from(frame, frames, own_frame);
  const auto seen = frames.first(captured.count);
  return {.whole = captured.whole,
          .in_signal_handler = captured.in_signal_handler,
          .in_driver = std::ranges::any_of(seen, is_in_driver),
          .met_own_frame = captured.met_own_frame,
          .from_the_beginning = captured.whole && !seen.empty() &&
                                is_first_frame(seen.back() + 1, captured.outermost_sp)};
}

bool has_left(tracking::CallSites& sites, const void* frame, const void* own_frame) noexcept {
  if (is_confined()) return false;
  const ErrnoGuard keep;
  const PresentFrames frames = present_frames(sites, frame, own_frame);
  return frames.from_the_beginning && !frames.met_own_frame;
}

void note_beginnings_of_stacks() noexcept {
  const auto function = reinterpret_cast<std::uintptr_t>(&makecontext);
  const LoadedObject libc = object_at(function);
  libc_code = {libc.start(), libc.end(), first_return_address_of_a_coroutine()};
}

bool call_with_room(tracking::CallSites& sites, FunctionRef<void()> work) noexcept {
  if (!is_roomy_own_stack(sites))
    return call_on_own_stack([](void* given) { (*static_cast<FunctionRef<void()>*>(given))(); },
                             &work);
  work();
  return true;
}

}  // namespace cuwarden::shim
