#include "runtime_hooks/stacks/cold_part.hpp"

#include <cstdint>
#include <cstring>

#include "runtime_hooks/stacks/eh_frame.hpp"

namespace cuwarden::stacks {
namespace {

// If the bytes are a jump with a distance of 32 bits, returns the number of bytes before the
// distance: 1 for "jmp", 2 for the conditional ones. Otherwise returns 0.
unsigned bytes_before_distance(const std::uint8_t* code) noexcept {
  constexpr std::uint8_t jump = 0xe9, two_byte_opcode = 0x0f, conditional_jump = 0x80;
  if (code[0] == jump) return 1;
  return code[0] == two_byte_opcode && (code[1] & 0xf0) == conditional_jump ? 2 : 0;
}

// True if the code begins with the frame of a function that was called right before.
bool is_entry(std::uint64_t address) noexcept {
  const Rule rule = learn_rule(address, true).rule;
  return rule.base() == Rule::Base::special ||
         (rule.base() == Rule::Base::rsp && rule.cfa() == sizeof(void*));
}

}  // namespace

// The code is searched for the bytes of a jump, also inside other instructions. Bytes that are no
// jump lead to a function's entry, if to code at all, and so they are passed over.
CodeRange cold_part_of(CodeRange function) noexcept {
  constexpr std::uint64_t longest_jump = 6;
  CodeRange other;  // where the last jump led that left the function
  for (std::uint64_t at = function.start; at + longest_jump <= function.end; ++at) {
    const auto* const code = reinterpret_cast<const std::uint8_t*>(at);
    const unsigned before = bytes_before_distance(code);
    if (before == 0) continue;
    std::int32_t distance;
    std::memcpy(&distance, code + before, sizeof distance);
    const std::uint64_t target =
        at + before + sizeof distance + static_cast<std::uint64_t>(std::int64_t{distance});
    if (function.contains(target) || other.contains(target)) continue;
    other = described_code(target);
    if (other.start != 0 && !is_entry(other.start)) return other;
  }
  return {};
}

}  // namespace cuwarden::stacks
