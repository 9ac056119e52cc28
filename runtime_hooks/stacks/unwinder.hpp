// Call stacks, fast: frames are left by cached rules (rule_table.hpp), and a stack that has not
// changed since it was last walked is recognised without a walk (known_stacks.hpp). Every stack is
// the one that libgcc's unwinder would give, or its beginning; where it ends early, a counter says
// why. Frames that rules cannot express end it too: libgcc could leave them, but it reads whatever
// a damaged stack tells it to, and would take the process down. At calls compilers make no such
// frames; a few hand-written functions, interrupted at certain instructions, are such.
//
// No function takes a lock, allocates, or makes a system call, except where something is met for
// the first time (code, a deeper part of the thread's stack) and on stacks that are not the
// thread's own. They may be called in signal handlers.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "runtime_hooks/core/mapping.hpp"
#include "runtime_hooks/stacks/captured.hpp"
#include "runtime_hooks/stacks/known_stacks.hpp"
#include "runtime_hooks/stacks/rule_table.hpp"

namespace cuwarden::stacks {

// Why a stack ends early. Where libgcc would have gone on, it says that it is truncated.
enum class Exception : std::uint32_t {
  not_expressible,  // at a frame that a rule cannot express
  foreign_code,     // at code of no module: a JIT compiler's
  no_description,   // at a module's code without unwind tables
  malformed,        // at unwind tables that make no sense
  unreadable,       // at a frame that cannot be read: the stack is damaged
  endless,          // goes in circles
};
inline constexpr std::size_t exceptions = 6;

class Unwinder {
 public:
  // Without memory, all stacks are walked slowly. `counts`: one for each Exception, which outlives
  // this object; its own where there is none.
  explicit Unwinder(std::atomic<std::uint64_t>* counts = nullptr) noexcept;
  Unwinder(const Unwinder&) = delete;
  Unwinder& operator=(const Unwinder&) = delete;

  // In all of these `frame` is __builtin_frame_address(0) of the function that calls, which goes on
  // running.

  // The name that the calling thread gave to this same stack, 0 where it has none.
  std::uint32_t recognise(const void* frame) const noexcept {
    return known_.find(reinterpret_cast<std::uint64_t>(frame));
  }

  // Fills `frames` innermost first and leaves out the frames of this shared object, that of `frame`
  // included. A frame is an address inside the call instruction: the return address less one, or
  // the interrupted instruction itself below a signal handler.
  Captured capture(const void* frame, std::span<std::uint64_t> frames) noexcept;

  // Gives the stack, captured before, a name other than 0. recognise() returns it to this thread as
  // long as the stack is the same, until modules change. Not every stack is remembered. `frames` is
  // overwritten, and must always be as large. `generation`: as it was before the name was found.
  void remember(ThreadSlot thread, const void* frame, std::span<std::uint64_t> frames,
                std::uint32_t name, std::uint32_t generation) noexcept;
  std::uint32_t generation() const noexcept { return known_.generation(); }

  // A module was unloaded: other code may come to lie where it was.
  void modules_changed() noexcept;
  // Names that were given are no longer good.
  void forget_names() noexcept;

  std::uint64_t count_of(Exception reason) const noexcept {
    return counts_[static_cast<std::size_t>(reason)].load(std::memory_order_relaxed);
  }

 private:
  struct Registers;
  struct Walk;
  struct Notes;
  enum class Way;
  template <bool drafting>
  void walk(Walk&, KnownStacks::Entry*) noexcept;
  Way step_specially(Walk&, Registers&, Rule) noexcept;
  Rule learn(Walk&, std::uint64_t place) noexcept;
  void count(const Walk&, Exception) noexcept;

  std::atomic<std::uint64_t>* counts_;
  std::atomic<std::uint64_t> own_counts_[exceptions]{};
  Mapping memory_;
  RuleTable rules_;
  KnownStacks known_;
};

}  // namespace cuwarden::stacks
