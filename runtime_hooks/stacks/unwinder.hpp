// Captures call stacks quickly. Frames are left by cached rules (rule_table.hpp), and a stack that
// has not changed since its last walk is recognised without a walk (known_stacks.hpp).
//
// Every stack is the one that libgcc's unwinder would give, or its beginning. If a stack ends
// early, a counter says why. Frames that rules cannot express end a stack, too. libgcc could leave
// such frames, but it reads whatever a damaged stack tells it to, and would take the process down.
// Compilers make no such frames at calls; a few hand-written functions do, if interrupted at
// certain instructions.
//
// No function takes a lock, allocates, or makes a system call. Exceptions are things met for the
// first time (code, a deeper part of the thread's stack) and stacks that are not the thread's own.
// All may be called in signal handlers.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "runtime_hooks/core/memory/mapping.hpp"
#include "runtime_hooks/stacks/captured.hpp"
#include "runtime_hooks/stacks/known_stacks.hpp"
#include "runtime_hooks/stacks/rule_table.hpp"

namespace cuwarden::stacks {

// Reasons for which a captured stack ends before the thread's first frame. Except for
// `foreign_code` and `no_description`, where libgcc's unwinder would end as well, the stack is
// marked as truncated.
enum class Exception : std::uint32_t {
  not_expressible,  // The unwind table says more about the frame than a Rule can hold.
  foreign_code,     // The code belongs to no module, as a JIT compiler's.
  no_description,   // The code's module has no unwind table for it.
  malformed,        // The unwind table is invalid.
  // The frame lies at an address that cannot be read: the stack is damaged. Or a seccomp filter
  // forbids to find out if a frame outside the thread's known stack can be read.
  unreadable,
  // The stack has 4,096 frames of this shared object, or more: it goes in circles.
  endless,
};
// Number of enumerators of Exception.
inline constexpr std::size_t exceptions = 6;

// Captures call stacks of the calling thread. A stack that has not changed since it was remembered
// is recognised without a walk. All functions may be called by several threads at once, and in
// signal handlers.
class Unwinder {
 public:
  // `counts` points to one counter for each Exception, in their order, which counts the stacks that
  // ended for this reason. The caller keeps the counters as long as the object; null: the object
  // has its own. Without memory for unwind rules, libgcc's unwinder walks all stacks, which is
  // slower.
  explicit Unwinder(std::atomic<std::uint64_t>* counts = nullptr) noexcept;

  // Returns the name (a number) that remember() gave to the calling thread's present stack; 0 if
  // the stack has none or has changed. `frame` is __builtin_frame_address(0) of the calling
  // function or of a caller of it that is still running.
  std::uint32_t recognise(const void* frame) const noexcept {
    return known_.find(reinterpret_cast<std::uint64_t>(frame));
  }

  // Fills `frames` with the calling thread's stack, innermost frame first. Returns the number of
  // frames, and if they are all there. `frame` is __builtin_frame_address(0) of a function that is
  // still running; the caller of that function is the innermost frame. Frames of this shared object
  // are left out. A frame is an address inside the call instruction (the return address less one),
  // or the instruction that a signal interrupted. `own_frame`: frame address
  // (__builtin_frame_address(0)) of a function of this shared object, for Captured::met_own_frame;
  // null: none is looked for.
  //
  // `stack_pointers`: an array as long as `frames`, which gets the value of the stack pointer (rsp)
  // in each frame; zeros if libgcc's unwinder does the walk. Null: these values are not wanted.
  Captured capture(const void* frame, std::span<std::uint64_t> frames,
                   const void* own_frame = nullptr,
                   std::uint64_t* stack_pointers = nullptr) noexcept;

  // Gives the stack that capture() has walked from `frame` the name `name`, not 0. recognise() then
  // returns the name on this thread while the stack is unchanged. `thread` is the calling thread's
  // slot, and `frames` a buffer as large as capture()'s, which is overwritten. `generation` is the
  // result of generation() before the name was looked up; if it has changed since, the name is not
  // kept. Some stacks are not remembered, such as those in signal handlers or with code of no
  // module.
  void remember(ThreadSlot thread, const void* frame, std::span<std::uint64_t> frames,
                std::uint32_t name, std::uint32_t generation) noexcept;
  // Returns a number that changes when names of stacks are forgotten. A caller reads it before it
  // looks up a stack's name, and passes it to remember(). So a name that has become invalid in
  // between is not kept.
  std::uint32_t generation() const noexcept { return known_.generation(); }

  // Forgets all unwind rules and all names of stacks, because code was unloaded and other code may
  // come to its addresses.
  void modules_changed() noexcept;
  // Forgets the names of all stacks, because they have become invalid. Keeps the unwind rules.
  void forget_names() noexcept;

  // Returns the number of captured stacks that ended before the thread's first frame for this
  // reason, as counted in the constructor's `counts`.
  std::uint64_t count_of(Exception reason) const noexcept {
    return counts_[static_cast<std::size_t>(reason)].load(std::memory_order_relaxed);
  }

 private:
  struct Registers;  // the registers of the frame that a walk has reached: pc, sp, bp
  struct Walk;       // a walk of one stack: its arguments, its state and its result
  struct Notes;      // notes the words that a walk reads, for recognising the stack later
  enum class Way;    // result of a step of a walk
  // Walks the stack that Walk describes, and writes the outcome to Walk. `drafting`: true to write
  // all words of the stack that are read to the entry, by which the stack is recognised later.
  // Otherwise the entry is null.
  template <bool drafting>
  void walk(Walk&, KnownStacks::Entry*) noexcept;
  // Leaves a frame with a special rule, such as a signal handler's, by changing the registers to
  // those of the caller. Returns `on` if the walk goes on, `over` if the stack ends here, and `cut`
  // if the frame cannot be left.
  Way step_specially(Walk&, Registers&, Rule) noexcept;
  // Finds the rule for leaving the frame that goes on at `pc` (a return address), which is not in
  // `rules_` yet. Stores the rule there if it holds as long as the code is loaded.
  Rule learn(Walk&, std::uint64_t pc) noexcept;
  // Counts in `counts_` that a stack has ended early for this reason. Does nothing for a walk of
  // remember(), since capture() has counted the stack.
  void count(const Walk&, Exception) noexcept;

  // One counter for each Exception (reason for which a stack ends early), in their order:
  // `own_counts_`, or those passed to the constructor.
  std::atomic<std::uint64_t>* counts_;
  // The counters to which `counts_` points if the constructor got none: one for each Exception, in
  // their order.
  std::atomic<std::uint64_t> own_counts_[exceptions]{};
  // Memory of `rules_`; without it all stacks are walked by libgcc's unwinder.
  Mapping memory_;
  RuleTable rules_;    // rules for leaving frames, by return address
  KnownStacks known_;  // stacks that remember() has given names
};

}  // namespace cuwarden::stacks
