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

#include "runtime_hooks/core/mapping.hpp"
#include "runtime_hooks/stacks/captured.hpp"
#include "runtime_hooks/stacks/known_stacks.hpp"
#include "runtime_hooks/stacks/rule_table.hpp"

namespace cuwarden::stacks {

// Reasons for which a stack ends early. Where libgcc would have gone on, the stack is marked as
// truncated.
enum class Exception : std::uint32_t {
  not_expressible,  // A frame that a rule cannot express.
  foreign_code,     // Code of no module, such as a JIT compiler's.
  no_description,   // Code of a module without unwind tables.
  malformed,        // Unwind tables that make no sense.
  unreadable,       // A frame that cannot be read: the stack is damaged.
  endless,          // A stack that goes in circles.
};
inline constexpr std::size_t exceptions = 6;  // number of enumerators of Exception

class Unwinder {
 public:
  // `counts` points to one counter for each Exception, and must outlive this object; null: the
  // object counts by itself. If memory for the rules is lacking, all stacks are walked slowly.
  explicit Unwinder(std::atomic<std::uint64_t>* counts = nullptr) noexcept;
  Unwinder(const Unwinder&) = delete;
  Unwinder& operator=(const Unwinder&) = delete;

  // In all functions below, `frame` is __builtin_frame_address(0) of the calling function, which
  // must not have returned.

  // Returns the name that the calling thread gave to this same stack; 0 if it has none.
  std::uint32_t recognise(const void* frame) const noexcept {
    return known_.find(reinterpret_cast<std::uint64_t>(frame));
  }

  // Fills `frames`, innermost first, without the frames of this shared object, that of `frame`
  // included. A frame is an address inside the call instruction: the return address less one, or
  // the interrupted instruction itself below a signal handler.
  Captured capture(const void* frame, std::span<std::uint64_t> frames) noexcept;

  // Gives a stack that was captured before a name other than 0. recognise() returns the name to
  // this thread as long as the stack is the same, until modules change. Not every stack is
  // remembered. `frames` is a buffer that is overwritten; it must have the same size in every call.
  // `generation` is generation() as it was before the name was found.
  void remember(ThreadSlot thread, const void* frame, std::span<std::uint64_t> frames,
                std::uint32_t name, std::uint32_t generation) noexcept;
  // A number that changes when names are forgotten.
  std::uint32_t generation() const noexcept { return known_.generation(); }

  // Forgets all rules and names, because a module was unloaded: other code may be mapped at its
  // addresses.
  void modules_changed() noexcept;
  // Forgets the names that were given, because they are no longer valid.
  void forget_names() noexcept;

  // Returns how many stacks ended early for this reason.
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
  Rule learn(Walk&, std::uint64_t pc) noexcept;
  void count(const Walk&, Exception) noexcept;

  std::atomic<std::uint64_t>* counts_;
  std::atomic<std::uint64_t> own_counts_[exceptions]{};
  Mapping memory_;
  RuleTable rules_;
  KnownStacks known_;
};

}  // namespace cuwarden::stacks
