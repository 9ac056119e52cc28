#include "runtime_hooks/stacks/python/interpreter.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "runtime_hooks/stacks/python/object_fields.hpp"

namespace cuwarden::stacks::python {
namespace {

__attribute__((always_inline)) inline std::uint64_t code_of(std::uint64_t frame,
                                                            const Layout& layout) noexcept {
  return at<std::uint64_t>(frame + layout.frame_code) & ~std::uint64_t{layout.code_tag};
}

__attribute__((always_inline)) inline PythonFrame frame_at(std::uint64_t frame,
                                                           const Layout& layout) noexcept {
  const std::uint64_t code = code_of(frame, layout);
  const std::uint64_t position =
      layout.has_frame_objects()
          ? static_cast<std::uint32_t>(at<std::int32_t>(frame + layout.frame_instruction))
          : at<std::uint64_t>(frame + layout.frame_instruction);
  return {code, position, stamp_of(code, layout)};
}

// Returns Interpreter::instruction_of().
__attribute__((always_inline)) inline std::uint64_t instruction_at(const PythonFrame& frame,
                                                                   const Layout& layout) noexcept {
  if (layout.has_frame_objects()) {
    // The number of bytes in 3.9, of instructions in 3.10; -1 before the first one.
    const auto last = std::max(static_cast<std::int32_t>(frame.position), 0);
    return static_cast<std::uint64_t>(layout.version < 0x030a ? last / 2 : last);
  }
  // Before the first one, it may lie right before the bytecode.
  const std::uint64_t start = frame.code + layout.code_instructions;
  return frame.position > start ? (frame.position - start) / 2 : 0;
}

// False for a frame that has not begun, or that the interpreter uses for itself: Python does not
// show it, either (_PyFrame_IsIncomplete).
__attribute__((always_inline)) inline bool is_shown(std::uint64_t frame, const PythonFrame& now,
                                                    const Layout& layout) noexcept {
  return at<std::uint8_t>(frame + layout.frame_owner) == Layout::owned_by_generator ||
         instruction_at(now, layout) >= at<std::uint32_t>(now.code + layout.code_first_shown);
}

// Frames at which a walk gives up: a damaged chain may go in circles, without a frame that counts.
constexpr std::size_t most_steps = 4 * FrameChain::most_frames;

// The walks below give each frame to a taker: Filling or Comparing. Its add() returns false to end
// the walk.
//
// Each frame is run by a C function of its own. From 3.10 on, the function's CFrame lies in it.
template <std::size_t index, class Taker>
void walk_frame_objects(std::uint64_t state, Taker& taker) noexcept {
  static constexpr Layout layout = layouts[index];
  std::uint64_t cframe =
      layout.state_cframe == Layout::none ? 0 : at<std::uint64_t>(state + layout.state_cframe);
  std::size_t left = most_steps;
  for (auto frame = at<std::uint64_t>(state + layout.state_frame); frame != 0 && left-- != 0;
       frame = at<std::uint64_t>(frame + layout.frame_previous)) {
    if (!taker.add(frame_at(frame, layout), [] { return true; })) return;
    taker.end_group(cframe);
    if (cframe != 0) cframe = at<std::uint64_t>(cframe + layout.cframe_previous);
  }
}

// A group ends with the frame that C code has entered (3.11), or before a frame that lies on the C
// stack and is no Python code (later versions).
template <std::size_t index, class Taker>
void walk_frames(std::uint64_t state, Taker& taker) noexcept {
  static constexpr Layout layout = layouts[index];
  std::uint64_t cframe = 0, frame = 0;
  if constexpr (layout.cframe_frame == Layout::none) {
    frame = at<std::uint64_t>(state + layout.state_frame);
  } else {
    cframe = at<std::uint64_t>(state + layout.state_cframe);
    frame = at<std::uint64_t>(cframe + layout.cframe_frame);
  }
  for (std::size_t left = most_steps; frame != 0 && left-- != 0;
       frame = at<std::uint64_t>(frame + layout.frame_previous)) {
    if constexpr (layout.frame_is_entry == Layout::none) {
      if (at<std::uint8_t>(frame + layout.frame_owner) >= Layout::owned_by_c_stack) {
        taker.end_group(frame);
        continue;
      }
    }
    const PythonFrame now = frame_at(frame, layout);
    if (!taker.add(now, [&] { return is_shown(frame, now, layout); })) break;
    if constexpr (layout.frame_is_entry != Layout::none) {
      if (at<std::uint8_t>(frame + layout.frame_is_entry) == 0) continue;
      taker.end_group(cframe);
      if (cframe != 0) cframe = at<std::uint64_t>(cframe + layout.cframe_previous);
    }
  }
  // A group that was cut off is still run by this CFrame's function; later versions do not tell.
  taker.end_group(cframe);
}

// Takes the frames into a chain.
struct Filling {
  FrameChain& chain;
  bool add(const PythonFrame& frame, const auto& shown) noexcept {
    return !shown() || chain.add(frame);
  }
  void end_group(std::uint64_t inside) noexcept { chain.end_group(inside); }
};

// Compares the frames with known ones. A frame that equals a known one is shown, as that one was.
struct Comparing {
  std::span<const PythonFrame> known;
  std::size_t met = 0;
  bool differs = false;
  bool add(const PythonFrame& frame, const auto& shown) noexcept {
    if (met < known.size() && frame == known[met]) {
      ++met;
      return true;
    }
    // A chain that is full has lost outer frames.
    if (met == FrameChain::most_frames) return false;
    differs = shown();
    return !differs;
  }
  void end_group(std::uint64_t) noexcept {}
};

// The walk of each layout is compiled for its positions: the loop is the greater part of the time
// that a stack with Python frames takes.
template <std::size_t index, class Taker>
__attribute__((always_inline)) inline void walk(std::uint64_t state, Taker& taker) noexcept {
  if constexpr (layouts[index].has_frame_objects())
    walk_frame_objects<index>(state, taker);
  else
    walk_frames<index>(state, taker);
}
template <std::size_t index>
void fill(std::uint64_t state, FrameChain& chain) noexcept {
  Filling filling{chain};
  walk<index>(state, filling);
}
template <std::size_t index>
bool equals(std::uint64_t state, std::span<const PythonFrame> known) noexcept {
  Comparing comparing{known};
  walk<index>(state, comparing);
  return !comparing.differs && comparing.met == known.size();
}
template <std::size_t... indexes>
constexpr std::array<Interpreter::Walks, sizeof...(indexes)> walks_of(
    std::index_sequence<indexes...>) {
  return {Interpreter::Walks{fill<indexes>, equals<indexes>}...};
}
constexpr auto walks = walks_of(std::make_index_sequence<std::size(layouts)>());

}  // namespace

constinit thread_local std::uint64_t Interpreter::own_state_ = 0;

Interpreter::Interpreter(const PythonSymbols& symbols, const Layout& layout) noexcept
    : symbols_(symbols),
      layout_(layout),
      walks_(walks[static_cast<std::size_t>(&layout - layouts)]) {}

// A thread's state has the thread's id. The key by which the state is found may be another one's
// after the interpreter's end.
bool Interpreter::is_of_this_thread(std::uint64_t state) const noexcept {
  if (!can_read_aligned(state, layout_.state_thread + 8u) ||
      at<std::uint64_t>(state + layout_.state_thread) != pthread_self())
    return false;
  own_state_ = state;
  return true;
}

// Returns the innermost frame of the thread with this state; 0 if it has none; nothing if the state
// is not where the layout says.
std::optional<std::uint64_t> Interpreter::checked_frame(std::uint64_t state) const noexcept {
  const auto read = [](std::uint64_t address) {
    return can_read_aligned(address, 8) ? std::optional(at<std::uint64_t>(address)) : std::nullopt;
  };
  if (layout_.cframe_frame == Layout::none) return read(state + layout_.state_frame);
  const auto cframe = read(state + layout_.state_cframe);
  if (!cframe || !can_read_aligned(*cframe + layout_.cframe_previous, 8)) return std::nullopt;
  return read(*cframe + layout_.cframe_frame);
}

// Walks the chain as read() does, but checks each address before it is read. The outermost CFrame's
// link has no value in 3.10, and a walk does not follow it.
bool Interpreter::is_plausible(std::uint64_t state, std::uint64_t frame) const noexcept {
  constexpr std::uint64_t frame_bytes = 112;
  const bool has_entries = layout_.frame_is_entry != Layout::none;
  const bool follows_cframes =
      layout_.has_cframes() && (layout_.has_frame_objects() || has_entries);
  auto cframe = follows_cframes ? at<std::uint64_t>(state + layout_.state_cframe) : 0;
  for (std::size_t count = 0; frame != 0 && count < most_steps; ++count) {
    if (!can_read_aligned(frame, frame_bytes)) return false;
    const bool is_python = layout_.frame_owner == Layout::none ||
                           at<std::uint8_t>(frame + layout_.frame_owner) < Layout::owned_by_c_stack;
    if (is_python && (!is_plausible_code(code_of(frame, layout_), symbols_, layout_) ||
                      instruction_at(frame_at(frame, layout_), layout_) > longest_table))
      return false;
    if (cframe != 0 && (!has_entries || at<std::uint8_t>(frame + layout_.frame_is_entry) != 0)) {
      if (!can_read_aligned(cframe + layout_.cframe_previous, 8)) return false;
      cframe = at<std::uint64_t>(cframe + layout_.cframe_previous);
    }
    frame = at<std::uint64_t>(frame + layout_.frame_previous);
  }
  return true;
}

bool Interpreter::is_run_between(std::uint64_t state, std::uint64_t low,
                                 std::uint64_t high) const noexcept {
  const auto cframe = at<std::uint64_t>(state + layout_.state_cframe);
  return cframe >= low && cframe < high;
}

bool Interpreter::has_evaluation(std::span<const std::uint64_t> frames) const noexcept {
  return std::ranges::any_of(frames, [&](std::uint64_t pc) { return symbols_.is_evaluation(pc); });
}

bool Interpreter::read(std::uint64_t state, FrameChain& chain) noexcept {
  chain.count = chain.groups = 0;
  chain.truncated = false;
  // An interpreter that ends frees the frames of threads that still run.
  if (symbols_.is_initialized() == 0) return false;
  Trust trust = trust_.load(std::memory_order_relaxed);
  if (trust == Trust::unknown) {
    if (is_probing_forbidden()) return false;
    const auto frame = checked_frame(state);
    if (frame == std::optional<std::uint64_t>(0)) return false;
    trust = frame && is_plausible(state, *frame) ? Trust::full : Trust::none;
    trust_.store(trust, std::memory_order_relaxed);
  }
  if (trust == Trust::none) return false;
  walks_.fill(state, chain);
  return chain.count != 0;
}

std::uint64_t Interpreter::instruction_of(const PythonFrame& frame) const noexcept {
  return instruction_at(frame, layout_);
}

}  // namespace cuwarden::stacks::python
