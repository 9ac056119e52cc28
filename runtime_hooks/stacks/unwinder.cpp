#include "runtime_hooks/stacks/unwinder.hpp"

#include <link.h>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/stacks/own_code.hpp"
#include "runtime_hooks/stacks/slow_walk.hpp"
#include "runtime_hooks/stacks/stack_bounds.hpp"

namespace cuwarden::stacks {
namespace {

// Of a struct ucontext on x86-64; what glibc's description of its signal trampoline says.
constexpr std::uint64_t ucontext_rbp = 120, ucontext_rsp = 160, ucontext_rip = 168;

// Frames of our own are not kept: without a bound, damaged ones could go in circles for ever.
constexpr std::size_t steps_beside_frames = 4096;

// How often the loader took a module out.
std::uint64_t unloads() noexcept {
  std::uint64_t count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t bytes, void* result) {
        if (bytes > offsetof(dl_phdr_info, dlpi_subs))
          *static_cast<std::uint64_t*>(result) = info->dlpi_subs;
        return 1;
      },
      &count);
  return count;
}

// `address` is inside a region. What lies there belongs to others, AddressSanitizer's red zones and
// all.
__attribute__((no_sanitize("address"), always_inline)) inline std::uint64_t read(
    std::uint64_t address) noexcept {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the caller has checked it
  return *reinterpret_cast<const volatile std::uint64_t*>(address);
}

}  // namespace

struct Unwinder::Registers {
  std::uint64_t next = 0;  // where the frame goes on
  std::uint64_t sp = 0;
  std::uint64_t bp = 0;
  bool interrupted = false;  // `next` is to be executed; else it is behind a call
};

struct Unwinder::Walk {
  std::uint64_t start = 0;
  std::span<std::uint64_t> frames;
  Captured result;
  Region region;
  bool lasts = true;  // all of it is the thread's own stack and modules' code

  // Rarely: the walk leaves the region that it knows.
  [[gnu::noinline, gnu::cold]] Region enter(std::uint64_t address) noexcept {
    region = region_of(address);
    if (!region.own) lasts = false;
    return region;
  }
};

enum class Unwinder::Way { on, over, slowly };

Unwinder::Unwinder() noexcept
    : memory_(Mapping::anonymous(RuleTable::bytes + KnownStacks::bytes)),
      rules_(memory_.data()),
      known_(static_cast<std::byte*>(memory_.data()) + (memory_ ? RuleTable::bytes : 0)),
      unloads_(unloads()) {
  static_assert(RuleTable::bytes % 64 == 0);
}

std::uint32_t Unwinder::recognise(const void* frame) const noexcept {
  if (!memory_) return 0;
  return known_.find(reinterpret_cast<std::uint64_t>(frame), known_own_stack());
}

Captured Unwinder::capture(const void* frame, std::span<std::uint64_t> frames) noexcept {
  if (frames.empty()) return {0, true};
  Walk state;
  state.start = reinterpret_cast<std::uint64_t>(frame);
  state.frames = frames;
  return memory_ && walk<false>(state, nullptr) ? state.result : walk_slowly(frames);
}

Captured Unwinder::capture(const void* frame, std::span<std::uint64_t> frames,
                           KnownStacks::Draft& draft) noexcept {
  if (memory_) known_.begin(draft, reinterpret_cast<std::uint64_t>(frame));
  if (!draft || frames.empty()) {
    draft.drop();
    return capture(frame, frames);
  }
  Walk state;
  state.start = reinterpret_cast<std::uint64_t>(frame);
  state.frames = frames;
  const bool whole = walk<true>(state, &draft.entry());
  if (!whole || !state.lasts) draft.drop();
  return whole ? state.result : walk_slowly(frames);
}

// False: libgcc has to walk this stack. What the loop carries from frame to frame is in local
// variables whose address nobody has: in registers.
template <bool drafting>
__attribute__((no_sanitize("address"))) bool Unwinder::walk(Walk& w,
                                                            KnownStacks::Entry* entry) noexcept {
  Region region = w.region = region_of_stack_pointer(w.start);
  w.lasts = region.own;
  const auto can_read = [&](std::uint64_t address) __attribute__((always_inline)) {
    if (__builtin_expect(region.holds(address), true)) return true;
    region = w.enter(address);
    return region.holds(address);
  };
  std::uint32_t words = 0;
  // Overwritten by the next word unless it counts.
  const auto note = [&](std::uint64_t address, std::uint64_t value, bool counts)
      __attribute__((always_inline)) {
    if (!drafting) return;
    store_field(entry->offsets[words], static_cast<std::uint32_t>(address - w.start));
    store_field(entry->values[words], value);
    words += counts;
  };
  const auto over = [&](std::size_t count, bool truncated) {
    w.result = {count, truncated};
    if (drafting) store_field(entry->count, words);
    return true;
  };

  if (!can_read(w.start) || !can_read(w.start + 8)) return false;
  // The frame of the function that called us, by its frame pointer.
  Registers at{.next = read(w.start + 8), .sp = w.start + 16, .bp = read(w.start)};
  std::uint64_t bp_at = w.start;
  bool bp_pending = true;  // no rule has used rbp since it was read: it need not be remembered
  note(w.start + 8, at.next, true);

  std::uint64_t* const frames = w.frames.data();
  const std::size_t room = w.frames.size();
  std::size_t count = 0;
  for (std::size_t steps = room + steps_beside_frames; steps != 0; --steps) {
    if (at.next == 0) return over(count, false);
    const std::uint64_t address = at.next - !at.interrupted;
    if (!is_own(address)) {
      if (count == room) return over(count, true);
      frames[count++] = address;
    }
    Rule rule = rules_.find(address);
    if (__builtin_expect(!rule, false)) rule = learn(w, address, at.interrupted);

    const Rule::Base base = rule.base();
    if (__builtin_expect(base == Rule::Base::special, false)) {
      Registers copy = at;
      const Way way = step_specially(w, copy, rule);
      if (way == Way::slowly) return false;
      if (way == Way::over) return over(count, false);
      at = copy;
      region = w.region;
      continue;
    }
    if (drafting) {
      if (words + 3 > KnownStacks::words) w.lasts = false, words = 0;
      const bool uses_bp = base != Rule::Base::rsp;
      note(bp_at, at.bp, uses_bp && bp_pending);
      bp_pending = bp_pending && !uses_bp;
    }
    std::uint64_t cfa = 0, saved_at = 0;
    if (__builtin_expect(base == Rule::Base::stored_at_rbp, false)) {
      const std::uint64_t stored_at = at.bp + static_cast<std::uint64_t>(rule.signed_cfa());
      if (!can_read(stored_at)) break;
      cfa = read(stored_at);
      note(stored_at, cfa, true);
      saved_at = (rule.rbp_saved() ? at.bp : cfa) + static_cast<std::uint64_t>(rule.rbp_at());
    } else {
      cfa = (base == Rule::Base::rsp ? at.sp : at.bp) + rule.cfa();
      saved_at = cfa + static_cast<std::uint64_t>(rule.rbp_at());
    }
    const std::uint64_t return_at = cfa - 8;
    // Where rbp is not saved, its place is the return address's.
    if (!can_read(saved_at)) break;
    const std::uint64_t saved = read(saved_at);
    if (!can_read(return_at)) break;
    at.next = read(return_at);
    at.interrupted = false;
    at.bp = rule.rbp_saved() ? saved : at.bp;
    bp_at = rule.rbp_saved() ? saved_at : bp_at;
    bp_pending = bp_pending || rule.rbp_saved();
    at.sp = cfa;
    note(return_at, at.next, true);
  }
  w.lasts = false;
  this->count(region.count == 0 ? Exception::unreadable : Exception::endless);
  return over(count, false);
}

// The rarer ways to leave a frame.
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
      at.next = read(context + ucontext_rip);
      if (!can_read(context + ucontext_rsp)) break;
      at.sp = read(context + ucontext_rsp);
      at.interrupted = true;
      return Way::on;
    }
    case Rule::Special::plt:
      // By the instruction itself, which has not pushed yet or has.
      w.lasts = false;
      at.sp += 8 + ((at.next & 15) >= rule.argument() ? 8 : 0);
      if (!can_read(at.sp - 8)) break;
      at.next = read(at.sp - 8);
      at.interrupted = false;
      return Way::on;
    case Rule::Special::no_description:
      count(Exception::no_description);
      return Way::over;
    case Rule::Special::foreign_code:
      count(Exception::foreign_code);
      return Way::over;
    case Rule::Special::malformed:
      count(Exception::malformed);
      return Way::over;
    default:
      count(Exception::not_expressible);
      return Way::slowly;
  }
  w.lasts = false;
  count(Exception::unreadable);
  return Way::over;
}

// Code that is met for the first time, or that may be replaced.
[[gnu::noinline, gnu::cold]] Rule Unwinder::learn(Walk& w, std::uint64_t address,
                                                  bool interrupted) noexcept {
  const ErrnoGuard keep;
  const Learned learned = learn_rule(address, interrupted, host_.load(std::memory_order_relaxed));
  if (learned.lasts)
    rules_.insert(address, learned.rule);
  else
    w.lasts = false;
  return learned.rule;
}

void Unwinder::modules_changed() noexcept {
  if (!memory_) return;
  const ErrnoGuard keep;
  const std::uint64_t now = unloads();
  if (unloads_.exchange(now, std::memory_order_relaxed) == now) return;
  rules_.clear();
  known_.forget_all();
}

}  // namespace cuwarden::stacks
