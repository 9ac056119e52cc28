#include "shim/process/filter_program.hpp"

#include <linux/audit.h>
#include <linux/seccomp.h>

#include <algorithm>
#include <cstring>

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/memory/readable.hpp"

namespace cuwarden::shim {
// Not in the unnamed namespace, since a header declares SeccompFilter::Reached, which has members
// of these types. GCC would warn of that where files are compiled together (-Wsubobject-linkage).
namespace filter {

// The contents of a register of the machine that runs filters.
struct Value {
  bool is_known = false;  // false if it depends on arguments of the system call
  std::uint32_t number = 0;

  friend bool operator==(const Value&, const Value&) = default;
};
constexpr Value known_value(std::uint32_t number) noexcept { return {true, number}; }

// The two registers of that machine.
struct Registers {
  Value a, x;
};

}  // namespace filter

namespace {

using filter::known_value;
using filter::Registers;
using filter::Value;

bool is_readable_range(const void* start, std::size_t bytes) noexcept {
  const auto first = reinterpret_cast<std::uintptr_t>(start);
  // is_readable() reads eight bytes at a time, so the last address is eight bytes before the end.
  for (std::uintptr_t at = first; at < first + bytes; at = (at / page_bytes + 1) * page_bytes)
    if (!is_readable(reinterpret_cast<const void*>(std::min(at, first + bytes - 8)))) return false;
  return true;
}

// Returns a word of the data about a system call that the kernel gives to the filter.
Value loaded(std::uint32_t offset, std::uint32_t number) noexcept {
  if (offset == offsetof(seccomp_data, nr)) return known_value(number);
  if (offset == offsetof(seccomp_data, arch)) return known_value(AUDIT_ARCH_X86_64);
  return {};
}

Value calculated(std::uint16_t code, Value a, Value operand) noexcept {
  if (!a.is_known || !operand.is_known) return {};
  const std::uint32_t by = operand.number;
  switch (BPF_OP(code)) {
    case BPF_ADD:
      return known_value(a.number + by);
    case BPF_SUB:
      return known_value(a.number - by);
    case BPF_AND:
      return known_value(a.number & by);
    case BPF_OR:
      return known_value(a.number | by);
    case BPF_XOR:
      return known_value(a.number ^ by);
    case BPF_LSH:
      return by < 32 ? known_value(a.number << by) : Value{};
    case BPF_RSH:
      return by < 32 ? known_value(a.number >> by) : Value{};
    default:
      // Products and quotients count as unknown: filters that compare numbers do not need
      // them.
      return {};
  }
}

enum class Jump { taken, passed, unknown };

Jump jump_of(std::uint16_t code, Value a, Value operand) noexcept {
  if (!a.is_known || !operand.is_known) return Jump::unknown;
  const std::uint32_t by = operand.number;
  bool taken = false;
  switch (BPF_OP(code)) {
    case BPF_JEQ:
      taken = a.number == by;
      break;
    case BPF_JGT:
      taken = a.number > by;
      break;
    case BPF_JGE:
      taken = a.number >= by;
      break;
    case BPF_JSET:
      taken = (a.number & by) != 0;
      break;
    default:
      return Jump::unknown;
  }
  return taken ? Jump::taken : Jump::passed;
}

bool lets_through(std::uint32_t answer) noexcept {
  const std::uint32_t action = answer & SECCOMP_RET_ACTION_FULL;
  return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
}

// Changes the registers as the instruction does. The instruction is neither a jump nor a return.
void run(const sock_filter& instruction, std::uint32_t number, Registers& registers) noexcept {
  const auto [code, jump_if, jump_else, value] = instruction;
  const Value constant = known_value(value);
  switch (BPF_CLASS(code)) {
    case BPF_LD:
      registers.a = BPF_MODE(code) == BPF_ABS   ? loaded(value, number)
                    : BPF_MODE(code) == BPF_IMM ? constant
                                                : Value{};
      break;
    case BPF_LDX:
      registers.x = BPF_MODE(code) == BPF_IMM ? constant : Value{};
      break;
    case BPF_ALU:
      registers.a = calculated(code, registers.a, BPF_SRC(code) == BPF_X ? registers.x : constant);
      break;
    case BPF_MISC:
      if (BPF_MISCOP(code) == BPF_TAX)
        registers.x = registers.a;
      else
        registers.a = registers.x;
      break;
    default:
      // A store has no effect here, because values that are loaded from memory count as
      // unknown.
      break;
  }
}

}  // namespace

// The registers before an instruction. A value is known if it is the same on all ways to it.
struct SeccompFilter::Reached {
  bool is_reached;
  Registers registers;

  void add(const Registers& from) noexcept {
    if (!is_reached) {
      is_reached = true;
      registers = from;
      return;
    }
    if (registers.a != from.a) registers.a = {};
    if (registers.x != from.x) registers.x = {};
  }
};

SeccompFilter::Reached* SeccompFilter::states() const noexcept {
  return reinterpret_cast<Reached*>(static_cast<sock_filter*>(memory_.data()) + count_);
}

SeccompFilter::SeccompFilter(const sock_fprog* program) noexcept {
  if (program == nullptr) return;
  if (is_probing_forbidden()) {
    is_valid_ = true;
    return;
  }
  if (!is_readable_range(program, sizeof *program) || program->len == 0 ||
      program->len > BPF_MAXINSNS ||
      !is_readable_range(program->filter, program->len * sizeof(sock_filter)))
    return;
  is_valid_ = true;
  memory_ = Mapping::anonymous(program->len * (sizeof(sock_filter) + sizeof(Reached)));
  if (!memory_) return;
  count_ = program->len;
  std::memcpy(memory_.data(), program->filter, count_ * sizeof(sock_filter));
}

// All jumps of a filter lead forward. So each instruction is looked at once, after all instructions
// that lead to it.
bool SeccompFilter::allows(std::uint32_t number) const noexcept {
  if (count_ == 0) return false;
  Reached* const reached = states();
  std::fill_n(reached, count_, Reached{});
  reached[0].add({known_value(0), known_value(0)});
  for (std::size_t at = 0; at < count_; ++at) {
    if (!reached[at].is_reached) continue;
    const sock_filter& instruction = instructions()[at];
    Registers registers = reached[at].registers;
    const auto leads_to = [&](std::size_t distance) {
      const std::size_t next = at + 1 + distance;
      if (next < count_) reached[next].add(registers);
      return next < count_;
    };
    const Value operand =
        BPF_SRC(instruction.code) == BPF_X ? registers.x : known_value(instruction.k);
    if (BPF_CLASS(instruction.code) == BPF_RET) {
      const Value answer =
          BPF_RVAL(instruction.code) == BPF_A ? registers.a : known_value(instruction.k);
      if (!answer.is_known || !lets_through(answer.number)) return false;
    } else if (BPF_CLASS(instruction.code) != BPF_JMP) {
      run(instruction, number, registers);
      if (!leads_to(0)) return false;
    } else if (BPF_OP(instruction.code) == BPF_JA) {
      if (!leads_to(instruction.k)) return false;
    } else {
      const Jump jump = jump_of(instruction.code, registers.a, operand);
      if (jump != Jump::passed && !leads_to(instruction.jt)) return false;
      if (jump != Jump::taken && !leads_to(instruction.jf)) return false;
    }
  }
  return true;
}

}  // namespace cuwarden::shim
