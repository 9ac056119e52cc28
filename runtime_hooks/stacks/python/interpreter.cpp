#include "runtime_hooks/stacks/python/interpreter.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "runtime_hooks/core/hash.hpp"
#include "runtime_hooks/core/readable.hpp"

namespace cuwarden::stacks::python {
namespace {

// Largest plausible line number, length of a text and of a table of lines.
constexpr std::uint32_t most_lines = 100'000'000;
constexpr std::uint64_t longest_text = std::uint64_t{1} << 24,
                        longest_table = std::uint64_t{1} << 20;

// Reads a field at an address that is known to be readable.
template <class T>
__attribute__((no_sanitize("address", "thread"), always_inline)) inline T at(
    std::uint64_t address) noexcept {
  T value;
  __builtin_memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}

// True if the bytes from `address` on can be read. They are looked at in steps of 4 KiB.
bool can_read(std::uint64_t address, std::uint64_t bytes) noexcept {
  if (address < 4096 || address + bytes < address || address + bytes >= std::uint64_t{1} << 47)
    return false;
  for (std::uint64_t offset = 0; offset < bytes; offset += 4096)
    if (!is_readable(reinterpret_cast<const void*>(address + offset))) return false;
  return is_readable(
      reinterpret_cast<const void*>(address + std::max<std::uint64_t>(bytes, 8) - 8));
}

// True if a structure of `bytes` may begin at the address.
bool is_structure(std::uint64_t address, std::uint64_t bytes) noexcept {
  return address % 8 == 0 && can_read(address, bytes);
}

bool is_object(std::uint64_t address, std::uint64_t bytes, const void* type) noexcept {
  return type != nullptr && is_structure(address, bytes) &&
         at<std::uint64_t>(address + object_type) == reinterpret_cast<std::uint64_t>(type);
}

// The characters of a str object: their address, their number, and the bytes of each.
struct Characters {
  std::uint64_t start = 0, count = 0;
  unsigned bytes_each = 1;
};

// Bits of PyASCIIObject::state: two for interning, three for the bytes of a character, compact,
// ASCII. Texts of code objects are compact.
Characters characters_of(std::uint64_t text, const Layout& layout) noexcept {
  const auto state = at<std::uint32_t>(text + text_state);
  Characters found{.count = at<std::uint64_t>(text + object_length)};
  found.bytes_each = state >> 2 & 7;
  const bool is_ascii = (state >> 6 & 1) != 0;
  found.start = text + (is_ascii ? layout.ascii_characters : layout.other_characters);
  return found;
}

std::uint32_t character(const Characters& text, std::uint64_t index) noexcept {
  switch (text.bytes_each) {
    case 1:
      return at<std::uint8_t>(text.start + index);
    case 2:
      return at<std::uint16_t>(text.start + 2 * index);
    default:
      return at<std::uint32_t>(text.start + 4 * index);
  }
}

// Writes a str object's text as UTF-8, as far as whole characters fit. Lone surrogates, by which
// Python stands for undecodable bytes of a file's name, become question marks.
template <std::size_t room>
std::string_view text_of(std::uint64_t object, const Layout& layout,
                         char (&buffer)[room]) noexcept {
  const Characters text = characters_of(object, layout);
  std::size_t length = 0;
  for (std::uint64_t i = 0; i < text.count; ++i) {
    std::uint32_t code = character(text, i);
    if ((code >= 0xd800 && code < 0xe000) || code > 0x10ffff) code = '?';
    const std::size_t bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (length + bytes > room) break;
    if (bytes == 1) {
      buffer[length++] = static_cast<char>(code);
      continue;
    }
    for (std::size_t part = bytes; part-- > 1; code >>= 6)
      buffer[length + part] = static_cast<char>(0x80 | (code & 0x3f));
    buffer[length] = static_cast<char>(0xf00u >> bytes | code);
    length += bytes;
  }
  return {buffer, length};
}

bool is_text(std::uint64_t address, const PythonSymbols& symbols, const Layout& layout) noexcept {
  if (!is_object(address, layout.other_characters, symbols.text_type)) return false;
  const auto state = at<std::uint32_t>(address + text_state);
  const Characters text = characters_of(address, layout);
  const bool is_compact = (state >> 5 & 1) != 0;
  return is_compact && text.count <= longest_text &&
         (text.bytes_each == 1 || text.bytes_each == 2 || text.bytes_each == 4) &&
         can_read(text.start, text.count * text.bytes_each);
}

// Returns a hash of the contents of an object, before which its head lies. The products do not wait
// for each other, as those of hash_bytes() do: before 3.12, this is the greater part of the time
// that a frame takes.
std::uint64_t hash_of_contents(std::uint64_t start, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t word = sizeof(std::uint64_t);
  const std::uint64_t end = start + bytes;
  std::uint64_t hash = bytes;
  const auto add = [&](std::uint64_t left, std::uint64_t right, std::uint64_t offset) {
    hash += fold_product(left ^ hash_salt[2], right ^ hash_salt[3] ^ offset) + left;
  };
  std::uint64_t offset = 0;
  for (; offset + 2 * word < bytes; offset += 2 * word)
    add(at<std::uint64_t>(start + offset), at<std::uint64_t>(start + offset + word), offset);
  // The last words overlap those before, or the object's head, which is shifted out.
  const auto last = at<std::uint64_t>(end - word);
  if (bytes >= 2 * word)
    add(at<std::uint64_t>(end - 2 * word), last, offset);
  else if (bytes >= word)
    add(at<std::uint64_t>(start), last, offset);
  else if (bytes != 0)
    add(0, last >> 8 * (word - bytes), offset);
  return hash;
}

// Python has mostly hashed the texts of code objects, and keeps the result.
__attribute__((always_inline)) inline std::uint64_t hash_of_text(std::uint64_t text,
                                                                 const Layout& layout) noexcept {
  constexpr std::uint64_t not_hashed = UINT64_MAX;
  if (const auto kept = at<std::uint64_t>(text + text_hash); kept != not_hashed) return kept;
  const Characters characters = characters_of(text, layout);
  return hash_of_contents(characters.start, characters.count * characters.bytes_each);
}

// Returns a hash of all that a report says of a code object's frames.
__attribute__((always_inline)) inline std::uint64_t hash_of_code(std::uint64_t code,
                                                                 const Layout& layout) noexcept {
  const std::uint64_t file = hash_of_text(at<std::uint64_t>(code + layout.code_file), layout),
                      name = hash_of_text(at<std::uint64_t>(code + layout.code_name), layout),
                      lines = at<std::uint64_t>(code + layout.code_lines);
  return fold_product(file ^ hash_salt[0], name ^ hash_salt[1]) +
         hash_of_contents(lines + bytes_start, at<std::uint64_t>(lines + object_length)) +
         at<std::uint32_t>(code + layout.code_first_line);
}

[[gnu::noinline]] std::uint64_t hash_of_unnumbered(std::uint64_t code,
                                                   const Layout& layout) noexcept {
  return hash_of_code(code, layout);
}

// Code objects come and go, and one may get the address of another. From 3.12 on, each has a number
// of its own. Before that, and once the numbers have run out, its parts are compared.
__attribute__((always_inline)) inline std::uint64_t stamp_of(std::uint64_t code,
                                                             const Layout& layout) noexcept {
  if (layout.code_version == Layout::none) return hash_of_code(code, layout);
  const std::uint64_t version = at<std::uint32_t>(code + layout.code_version);
  if (version == 0) [[unlikely]]
    return hash_of_unnumbered(code, layout);
  return version << 32 | at<std::uint32_t>(code + layout.code_first_line);
}

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
std::uint64_t instruction_at(const PythonFrame& frame, const Layout& layout) noexcept {
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
bool is_shown(std::uint64_t frame, const PythonFrame& now, const Layout& layout) noexcept {
  return at<std::uint8_t>(frame + layout.frame_owner) == Layout::owned_by_generator ||
         instruction_at(now, layout) >= at<std::uint32_t>(now.code + layout.code_first_shown);
}

// Each frame is run by a C function of its own. From 3.10 on, the function's CFrame lies in it.
// Takers are what the walks below give the frames to: add() returns false to end the walk.
template <std::size_t index, class Taker>
void walk_frame_objects(std::uint64_t state, Taker& taker) noexcept {
  static constexpr Layout layout = layouts[index];
  std::uint64_t cframe =
      layout.state_cframe == Layout::none ? 0 : at<std::uint64_t>(state + layout.state_cframe);
  for (auto frame = at<std::uint64_t>(state + layout.state_frame); frame != 0;
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
  for (; frame != 0; frame = at<std::uint64_t>(frame + layout.frame_previous)) {
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
      cframe = at<std::uint64_t>(cframe + layout.cframe_previous);
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
  if (!is_structure(state, layout_.state_thread + 8u) ||
      at<std::uint64_t>(state + layout_.state_thread) != pthread_self())
    return false;
  own_state_ = state;
  return true;
}

bool Interpreter::is_plausible_code(std::uint64_t code) const noexcept {
  if (!is_object(code, layout_.code_instructions + 8u, symbols_.code_type)) return false;
  const auto file = at<std::uint64_t>(code + layout_.code_file),
             name = at<std::uint64_t>(code + layout_.code_name),
             lines = at<std::uint64_t>(code + layout_.code_lines);
  return at<std::uint32_t>(code + layout_.code_first_line) <= most_lines &&
         is_text(file, symbols_, layout_) && is_text(name, symbols_, layout_) &&
         is_object(lines, bytes_start, symbols_.bytes_type) &&
         at<std::uint64_t>(lines + object_length) <= longest_table &&
         can_read(lines + bytes_start, at<std::uint64_t>(lines + object_length));
}

// Returns the innermost frame of the thread with this state; 0 if it has none; nothing if the state
// is not where the layout says.
std::optional<std::uint64_t> Interpreter::checked_frame(std::uint64_t state) const noexcept {
  const auto read = [](std::uint64_t address) {
    return is_structure(address, 8) ? std::optional(at<std::uint64_t>(address)) : std::nullopt;
  };
  if (layout_.cframe_frame == Layout::none) return read(state + layout_.state_frame);
  const auto cframe = read(state + layout_.state_cframe);
  if (!cframe || !is_structure(*cframe + layout_.cframe_previous, 8)) return std::nullopt;
  return read(*cframe + layout_.cframe_frame);
}

// Walks the chain as read() does, but checks each address before it is read.
bool Interpreter::is_plausible(std::uint64_t frame) const noexcept {
  constexpr std::uint64_t frame_bytes = 112;
  for (std::size_t count = 0; frame != 0 && count < FrameChain::most_frames; ++count) {
    if (!is_structure(frame, frame_bytes)) return false;
    const bool is_python = layout_.frame_owner == Layout::none ||
                           at<std::uint8_t>(frame + layout_.frame_owner) < Layout::owned_by_c_stack;
    if (is_python && (!is_plausible_code(code_of(frame, layout_)) ||
                      instruction_at(frame_at(frame, layout_), layout_) > longest_table))
      return false;
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
  Trust trust = trust_.load(std::memory_order_relaxed);
  if (trust == Trust::unknown) {
    if (is_probing_forbidden()) return false;
    const auto frame = checked_frame(state);
    if (frame == std::optional<std::uint64_t>(0)) return false;
    trust = frame && is_plausible(*frame) ? Trust::full : Trust::none;
    trust_.store(trust, std::memory_order_relaxed);
  }
  if (trust == Trust::none) return false;
  walks_.fill(state, chain);
  return chain.count != 0;
}

std::uint64_t Interpreter::instruction_of(const PythonFrame& frame) const noexcept {
  return instruction_at(frame, layout_);
}

bool Interpreter::read_code(std::uint64_t code, CodeContents& contents) const noexcept {
  if (!is_plausible_code(code)) return false;
  const auto lines = at<std::uint64_t>(code + layout_.code_lines);
  contents.file =
      text_of(at<std::uint64_t>(code + layout_.code_file), layout_, contents.file_buffer);
  contents.name =
      text_of(at<std::uint64_t>(code + layout_.code_name), layout_, contents.name_buffer);
  contents.first_line = at<std::uint32_t>(code + layout_.code_first_line);
  contents.lines = {reinterpret_cast<const std::uint8_t*>(lines + bytes_start),
                    at<std::uint64_t>(lines + object_length)};
  return true;
}

}  // namespace cuwarden::stacks::python
