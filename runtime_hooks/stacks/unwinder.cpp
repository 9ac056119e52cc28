#include "runtime_hooks/stacks/unwinder.hpp"

#include <algorithm>
#include <utility>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/stacks/eh_frame.hpp"
#include "runtime_hooks/stacks/own_code.hpp"
#include "runtime_hooks/stacks/slow_walk.hpp"
#include "runtime_hooks/stacks/stack_bounds.hpp"

namespace cuwarden::stacks {
namespace {

// Offsets in a struct ucontext on x86-64, as in glibc's description of its signal trampoline.
constexpr std::uint64_t ucontext_rbp = 120, ucontext_rsp = 160, ucontext_rip = 168;

// The most frames of this object in one walk. They are not kept in the result, so that damaged ones
// could go in circles for ever.
constexpr std::size_t most_own_frames = 4096;

// Reads a word at an address inside a region, which the caller has checked. The memory is the
// program's, with AddressSanitizer's red zones in it.
__attribute__((no_sanitize("address"), always_inline)) inline std::uint64_t read(
    std::uint64_t address) noexcept {
  using Word [[gnu::may_alias]] = std::uint64_t;
  return *reinterpret_cast<const Word*>(address);
}

}  // namespace

struct Unwinder::Registers {
  // The pc at which the frame goes on: the return address, or the address after the interrupted
  // instruction's first byte. The address one before it stands for the frame.
  std::uint64_t pc = 0;
  std::uint64_t sp = 0;
  std::uint64_t bp = 0;
};

struct Unwinder::Walk {
  std::uint64_t start = 0;
  // Address of the frame of this object that is looked for; all ones: none.
  std::uint64_t wanted_own_frame = ~std::uint64_t{0};
  std::span<std::uint64_t> frames;
  std::uint64_t* stack_pointers = nullptr;  // gets the stack pointer of each frame; null: nothing
  Captured result;
  Region region;
  // True while the result may be remembered: all stack read is the thread's own, all code belongs
  // to modules, and no frame is a signal's or a linkage stub's.
  bool lasts = true;
  bool ends_early = false;  // True if the walk ended at code that no unwind table describes.
  bool counts = true;       // True if the reason for an early end is counted.
  // The last pc that a signal handler interrupted; 0: none. no_instruction: a call of a null
  // pointer was interrupted.
  std::uint64_t interrupted = 0;
  static constexpr std::uint64_t no_instruction = 1;

  // Looks for the region of an address outside the current one, which is rare.
  [[gnu::noinline, gnu::cold]] Region enter(std::uint64_t address) noexcept {
    region = region_of(address);
    if (!region.own) lasts = false;
    return region;
  }
};

// Results of a step: go `on` with the next frame, the stack is `over`, or it is `cut` short.
enum class Unwinder::Way { on, over, cut };

Unwinder::Unwinder(std::atomic<std::uint64_t>* counts) noexcept
    : counts_(counts != nullptr ? counts : own_counts_),
      memory_(Mapping::anonymous(RuleTable::bytes)),
      rules_(memory_.data()) {}

Captured Unwinder::capture(const void* frame, std::span<std::uint64_t> frames,
                           const void* own_frame, std::uint64_t* stack_pointers) noexcept {
  if (frames.empty()) return {0, true};
  Walk state;
  state.stack_pointers = stack_pointers;
  if (own_frame != nullptr) state.wanted_own_frame = reinterpret_cast<std::uint64_t>(own_frame);
  state.start = reinterpret_cast<std::uint64_t>(frame);
  state.frames = frames;
  if (!memory_) {
    if (stack_pointers != nullptr) std::fill_n(stack_pointers, frames.size(), 0);
    return walk_slowly(frames);
  }
  walk<false>(state, nullptr);
  return state.result;
}

void Unwinder::remember(ThreadSlot thread, const void* frame, std::span<std::uint64_t> frames,
                        std::uint32_t name, std::uint32_t generation) noexcept {
  Walk state;
  state.start = reinterpret_cast<std::uint64_t>(frame);
  state.frames = frames;
  state.counts = false;
  if (!memory_ || frames.empty() || !own_stack.holds(state.start)) return;
  KnownStacks::Draft draft;
  known_.begin(draft, thread, state.start);
  if (!draft) return;
  walk<true>(state, &draft.entry());
  if (state.lasts) known_.keep(draft, name, generation);
}

// Notes the words that the walk reads, as long as they all lie on the thread's own stack and fit
// into the entry. A return address waits until the next frame shows whether the saved rbp below it
// counts, too. Until a rule uses rbp, its value need not be noted: the program may use rbp for
// anything.
struct Unwinder::Notes {
  KnownStacks::Entry* entry;
  OwnStack own;             // Only words inside this stack may be noted.
  std::uint64_t start;      // Address of the first pair.
  std::uint64_t return_at;  // Address of the return address that waits.
  std::uint64_t bp_at;      // Address that rbp's value was read from; 0 if it has been noted.
  std::size_t words = 0, pairs = 0;
  // False once a word could not be noted.
  bool whole = true;

  // Writes the offset of the address from the stack's top. Returns false if it cannot be noted.
  bool offset_of(std::uint64_t at, KnownStacks::Offset& offset) noexcept {
    const std::uint64_t below_top = own.top - at;
    whole = whole && own.holds(at) && below_top <= std::uint64_t{INT32_MAX};
    offset = static_cast<KnownStacks::Offset>(0 - below_top);
    return whole;
  }
  template <class Block, std::size_t most, class Value>
  void add(Block (&blocks)[most], std::size_t& count, std::uint64_t at, const Value& value) {
    whole = whole && count < most * KnownStacks::block;
    KnownStacks::Offset offset = 0;
    if (!offset_of(at, offset)) return;
    Block& into = blocks[count / KnownStacks::block];
    into.offsets[count % KnownStacks::block] = offset;
    into.values[count++ % KnownStacks::block] = value;
  }
  // The functions below note words that the walk has read already.
  void add_word(std::uint64_t at) noexcept { add(entry->word_blocks, words, at, read(at)); }
  void add_pair(std::uint64_t at) noexcept {
    add(entry->pair_blocks, pairs, at, KnownStacks::Pair{read(at), read(at + 8)});
  }
  // Notes the words for a frame that is left by rbp.
  void next_by_bp() noexcept {
    if (bp_at == start)
      entry->first_lower_counts = ~std::uint64_t{0};
    else if (bp_at != 0 && bp_at == return_at - 8)
      return add_pair(std::exchange(bp_at, 0));
    else if (bp_at != 0)
      add_word(bp_at);
    bp_at = 0;
    next_by_sp();
  }
  // Notes the words for a frame that is left by rsp.
  void next_by_sp() noexcept {
    if (return_at != start + 8) add_word(return_at);
  }

  // Fills up the last block; returns the bytes of all blocks.
  template <class Block>
  static std::uint32_t bytes_of(Block* blocks, std::size_t count) noexcept {
    Block& last = blocks[count / KnownStacks::block];
    for (std::size_t i = count % KnownStacks::block; i % KnownStacks::block != 0; ++i, ++count) {
      last.offsets[i] = last.offsets[0];
      last.values[i] = last.values[0];
    }
    return static_cast<std::uint32_t>(count / KnownStacks::block * sizeof(Block));
  }
  // Notes the last return address and the lengths.
  void finish() noexcept {
    KnownStacks::Offset offset = 0;
    if (!offset_of(return_at, offset)) return;
    entry->last_offset = offset;
    entry->last_value = read(return_at);
    store_field(entry->pair_bytes, bytes_of(entry->pair_blocks, pairs));
    store_field(entry->word_bytes, bytes_of(entry->word_blocks, words));
  }
};

// Walks the stack. If `drafting`, the words read are noted in `entry`. The state carried from frame
// to frame is in local variables whose address is never taken, so that it stays in registers.
template <bool drafting>
__attribute__((no_sanitize("address"))) void Unwinder::walk(Walk& w,
                                                            KnownStacks::Entry* entry) noexcept {
  Region region = w.region = region_of_stack_pointer(w.start);
  w.lasts = region.own;
  const auto can_read = [&](std::uint64_t address) __attribute__((always_inline)) {
    if (__builtin_expect(region.holds(address), true)) return true;
    region = w.enter(address);
    return region.holds(address);
  };
  // The frame of the calling function, by its frame pointer.
  Registers at{.pc = read(w.start + 8), .sp = w.start + 16, .bp = read(w.start)};
  Notes notes{.entry = entry,
              .own = own_stack,
              .start = w.start,
              .return_at = w.start + 8,
              .bp_at = w.start};
  if (drafting) {
    entry->first = {at.bp, at.pc};
    entry->first_lower_counts = 0;
  }

  std::uint64_t* const frames = w.frames.data();
  std::uint64_t* const stack_pointers = w.stack_pointers;
  const std::size_t room = w.frames.size();
  std::size_t count = 0, own_frames = 0;
  bool met_own_frame = false;
  const auto over = [&](bool truncated) {
    w.result = {.count = count,
                .truncated = truncated,
                .whole = !truncated && !w.ends_early,
                .in_signal_handler = w.interrupted != 0,
                .met_own_frame = met_own_frame,
                .outermost_sp = at.sp};
    if (drafting) {
      notes.finish();
      w.lasts = w.lasts && notes.whole;
    }
  };
  const auto keep_frame = [&]() __attribute__((always_inline)) {
    if (is_own(at.pc - 1)) {
      ++own_frames;
      // A function that gives its frame address away keeps it in rbp.
      met_own_frame = met_own_frame || at.bp == w.wanted_own_frame;
      return true;
    }
    if (count == room) return false;
    if (!drafting && __builtin_expect(stack_pointers != nullptr, false))
      stack_pointers[count] = at.sp;
    frames[count++] = at.pc - 1;
    return true;
  };

  while (own_frames < most_own_frames) {
    const std::uint64_t found = rules_.first(at.pc);

    // The rule for functions that keep a frame pointer, as compilers make them. As a branch of its
    // own it lets the processor run ahead: the next frame is found by rbp alone, before the rule is
    // read.
    constexpr Rule usual = Rule::framed(Rule::Base::rbp, 16, true, -16);
    if (found == usual.word()) {
      if (!keep_frame()) return over(true);
      if (!can_read(at.bp) || !can_read(at.bp + 8)) break;
      if (drafting) {
        notes.next_by_bp();
        notes.return_at = at.bp + 8;
        notes.bp_at = at.bp;
      }
      at.pc = read(at.bp + 8);
      at.sp = at.bp + 16;
      at.bp = read(at.bp);
      continue;
    }

    Rule rule =
        RuleTable::is_rule(found) ? Rule(static_cast<std::uint32_t>(found)) : rules_.find(at.pc);
    if (__builtin_expect(!rule, false)) {
      if (at.pc == 0) return over(false);
      rule = learn(w, at.pc);
    }
    if (!keep_frame()) return over(true);
    const Rule::Base base = rule.base();
    if (__builtin_expect(base == Rule::Base::special, false)) {
      Registers copy = at;
      const Way way = step_specially(w, copy, rule);
      if (way != Way::on) return over(way == Way::cut);
      at = copy;
      region = w.region;
      continue;
    }
    if (drafting) base == Rule::Base::rsp ? notes.next_by_sp() : notes.next_by_bp();
    std::uint64_t cfa = 0, saved_at = 0;
    if (__builtin_expect(base == Rule::Base::stored_at_rbp, false)) {
      const std::uint64_t stored_at = at.bp + static_cast<std::uint64_t>(rule.signed_cfa());
      if (!can_read(stored_at)) break;
      cfa = read(stored_at);
      if (drafting) notes.add_word(stored_at);
      saved_at = (rule.rbp_saved() ? at.bp : cfa) + static_cast<std::uint64_t>(rule.rbp_at());
    } else {
      cfa = (base == Rule::Base::rsp ? at.sp : at.bp) + rule.cfa();
      saved_at = cfa + static_cast<std::uint64_t>(rule.rbp_at());
    }
    const std::uint64_t return_at = cfa - 8;
    // If rbp is not saved, saved_at is the address of the return address.
    if (!can_read(saved_at)) break;
    const std::uint64_t saved = read(saved_at);
    if (!can_read(return_at)) break;
    at.pc = read(return_at);
    if (drafting) {
      notes.return_at = return_at;
      if (rule.rbp_saved()) notes.bp_at = saved_at;
    }
    at.bp = rule.rbp_saved() ? saved : at.bp;
    at.sp = cfa;
  }
  w.lasts = false;
  this->count(w, region.count == 0 ? Exception::unreadable : Exception::endless);
  return over(true);
}

void Unwinder::count(const Walk& w, Exception reason) noexcept {
  if (w.counts) counts_[static_cast<std::size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
}

// Leaves a frame in one of the rarer ways.
__attribute__((no_sanitize("address"))) Unwinder::Way Unwinder::step_specially(Walk& w,
                                                                               Registers& at,
                                                                               Rule rule) noexcept {
  const auto can_read = [&](std::uint64_t address) {
    return w.region.holds(address) || w.enter(address).holds(address);
  };
  switch (rule.special()) {
    case Rule::Special::end:
      return Way::over;
    case Rule::Special::signal_frame: {
      w.lasts = false;
      const std::uint64_t context = at.sp;
      if (!can_read(context + ucontext_rbp)) break;
      at.bp = read(context + ucontext_rbp);
      if (!can_read(context + ucontext_rip)) break;
      const std::uint64_t instruction = read(context + ucontext_rip);
      if (!can_read(context + ucontext_rsp)) break;
      at.sp = read(context + ucontext_rsp);
      if (instruction == 0) {
        // The program has called a null pointer. The call has pushed its return address alone.
        w.interrupted = Walk::no_instruction;
        if (!can_read(at.sp)) break;
        at.pc = read(at.sp);
        at.sp += 8;
        return Way::on;
      }
      w.interrupted = at.pc = instruction + 1;
      return Way::on;
    }
    case Rule::Special::plt: {
      // The stub's instruction decides: it has pushed a second word, or not yet.
      w.lasts = false;
      const std::uint64_t instruction = at.pc - (at.pc == w.interrupted);
      at.sp += 8 + ((instruction & 15) >= rule.argument() ? 8 : 0);
      if (!can_read(at.sp - 8)) break;
      at.pc = read(at.sp - 8);
      return Way::on;
    }
    case Rule::Special::no_description:
      count(w, Exception::no_description);
      w.ends_early = true;
      return Way::over;
    case Rule::Special::foreign_code:
      count(w, Exception::foreign_code);
      w.ends_early = true;
      return Way::over;
    case Rule::Special::malformed:
      count(w, Exception::malformed);
      return Way::cut;
    default:
      count(w, Exception::not_expressible);
      return Way::cut;
  }
  w.lasts = false;
  count(w, Exception::unreadable);
  return Way::cut;
}

// Returns the rule for code that is met for the first time, or that may be replaced.
[[gnu::noinline, gnu::cold]] Rule Unwinder::learn(Walk& w, std::uint64_t pc) noexcept {
  const ErrnoGuard keep;
  const Learned learned = learn_rule(pc - 1, pc == w.interrupted);
  if (learned.lasts)
    rules_.insert(pc, learned.rule);
  else
    w.lasts = false;
  return learned.rule;
}

void Unwinder::modules_changed() noexcept {
  if (!memory_) return;
  rules_.clear();
  known_.forget_all();
}

void Unwinder::forget_names() noexcept {
  if (memory_) known_.forget_all();
}

}  // namespace cuwarden::stacks
