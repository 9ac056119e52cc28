#include "runtime_hooks/stacks/cold_part.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime_hooks/stacks/eh_frame.hpp"

namespace cuwarden::stacks {
namespace {

// If the code from `at` on is a jump with a distance of 32 bits, returns its target; otherwise 0.
// Nothing from `end` on is read.
std::uint64_t target_of_jump(std::uint64_t at, std::uint64_t end) noexcept {
  constexpr std::uint8_t jump = 0xe9, two_byte_opcode = 0x0f, conditional_jump = 0x80;
  const auto* const code = reinterpret_cast<const std::uint8_t*>(at);
  std::int32_t distance;
  std::uint64_t opcode_bytes = 0;
  if (code[0] == jump) opcode_bytes = 1;
  if (at + 1 < end && code[0] == two_byte_opcode && (code[1] & 0xf0) == conditional_jump)
    opcode_bytes = 2;
  if (opcode_bytes == 0 || at + opcode_bytes + sizeof distance > end) return 0;
  std::memcpy(&distance, code + opcode_bytes, sizeof distance);
  return at + opcode_bytes + sizeof distance + static_cast<std::uint64_t>(std::int64_t{distance});
}

// True if a jump from `from` to `to` can stay within a function: the frame is the same at both
// ends, and not that of a function that was called right before.
bool stays_in_function(std::uint64_t from, std::uint64_t to) noexcept {
  const Rule rule = learn_rule(to, true).rule;
  const bool is_entry = rule.base() == Rule::Base::rsp && rule.cfa() == sizeof(void*);
  return rule.base() != Rule::Base::special && !is_entry &&
         rule.word() == learn_rule(from, true).rule.word();
}

// A part of some function, and the number of jumps that lead into it.
struct Candidate {
  CodeRange part;
  std::uint64_t jumps = 0;
};

}  // namespace

// The bytes of a jump are looked for at each address, also inside other instructions. So a few
// targets mean nothing; nearly all of these have another frame.
CodeRange cold_part_of(CodeRange function) noexcept {
  constexpr std::size_t most_candidates = 16;
  Candidate candidates[most_candidates];
  std::size_t count = 0;
  for (std::uint64_t at = function.start; at < function.end; ++at) {
    const std::uint64_t target = target_of_jump(at, function.end);
    if (target == 0 || function.contains(target)) continue;
    Candidate* const known =
        std::find_if(candidates, candidates + count,
                     [&](const Candidate& one) { return one.part.contains(target); });
    if (known != candidates + count)
      ++known->jumps;
    else if (count < most_candidates && stays_in_function(at, target))
      candidates[count++] = {described_code(target), 1};
  }
  const Candidate* const best = std::max_element(
      candidates, candidates + count,
      [](const Candidate& left, const Candidate& right) { return left.jumps < right.jumps; });
  return best == candidates + count ? CodeRange{} : best->part;
}

}  // namespace cuwarden::stacks
