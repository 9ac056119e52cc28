// Runs the programs of unwind tables (DWARF 5, 6.4.2) up to an address, and returns as a rule how
// they describe the frame there. Where libgcc's unwinder differs from the standard, this does as
// libgcc does, so that both find the same stacks.
#pragma once

#include <cstdint>

#include "runtime_hooks/stacks/cursor.hpp"
#include "runtime_hooks/stacks/rule.hpp"

namespace cuwarden::stacks {

// Runs the instructions of a function's unwind table (DWARF 5, 6.4.2) up to an address, and returns
// as a Rule how the caller's frame is found from there. Where libgcc's unwinder differs from the
// standard, this class does as libgcc does.
class CfaProgram {
 public:
  // `address` is the code address whose frame is to be left, and `function` the address at which
  // its function begins. The alignments are the factors in the table's common entry (CIE).
  CfaProgram(std::uint64_t address, std::uint64_t function, std::uint64_t code_alignment,
             std::int64_t data_alignment) noexcept
      : address_(address),
        location_(function),
        code_alignment_(code_alignment),
        data_alignment_(data_alignment) {}

  // Runs a sequence of the table's instructions, up to the row that holds for the constructor's
  // `address`. To be called for the common entry's instructions first, then for the function's own.
  void run(Cursor instructions) noexcept;

  // Returns the rule for leaving the frame at the constructor's `address`, after run().
  // `signal_frame` is true if the table marks the function as the one to which signal handlers
  // return.
  Rule rule(bool signal_frame) const noexcept;

 private:
  // Ways in which the table describes a register's value in the caller. `same`: unchanged.
  // `undefined`: unknown. `at_cfa`: stored at an offset from the canonical frame address (CFA).
  // `expression`: stored at an address that a DWARF expression computes. `otherwise`: none of
  // these.
  enum class Kept : std::uint8_t { same, undefined, at_cfa, expression, otherwise };
  // The description of one register's value in the caller: the way, with the offset (bytes from the
  // CFA) or the DWARF expression that belongs to the way.
  struct SavedRegister {
    Kept how = Kept::same;
    std::int64_t offset = 0;
    Cursor expression;
  };
  // The row of the unwind table for the code at `location_`: how the canonical frame address (CFA)
  // and the caller's registers are found. The CFA is a register plus an offset in bytes, or is
  // given by a DWARF expression.
  struct Row {
    bool cfa_by_expression = false;
    std::uint64_t cfa_register = 0;
    std::int64_t cfa_offset = 0;
    Cursor cfa_expression;
    SavedRegister rbp, rsp, return_address;
  };
  // Most rows that DW_CFA_remember_state may have stored at a time. Deeper tables are not
  // expressible.
  static constexpr int deepest_state = 8;

  // Runs one instruction.
  void step(Cursor&) noexcept;
  // Runs one instruction whose operands follow its opcode.
  void extended(std::uint8_t opcode, Cursor&) noexcept;
  // Moves on by this many units of `code_alignment_` bytes of code.
  void advance(std::uint64_t steps) noexcept { location_ += steps * code_alignment_; }
  // Enters the description of the register with this DWARF number into the row; ignores registers
  // that a walk does not need.
  void keep(std::uint64_t column, SavedRegister) noexcept;
  // Enters that the register with this DWARF number is stored at an offset from the CFA, in units
  // of `data_alignment_`.
  void keep_at(std::uint64_t column, std::uint64_t factored) noexcept;
  // Returns `value` times `data_alignment_`; INT64_MAX if the product does not fit.
  std::int64_t factored(std::int64_t value) const noexcept;
  // Returns the rule for a row of the kernel's signal frame; not_expressible if the row differs
  // from glibc's usual one.
  Rule rule_of_signal_frame() const noexcept;
  // Returns the rule for a row whose CFA is given by a DWARF expression; not_expressible if the
  // expression is an unusual one.
  Rule rule_of_expression() const noexcept;

  // Three numbers: the code address that the row is wanted for; the address up to which the
  // instructions have run; the size of a unit of code in bytes.
  std::uint64_t address_, location_, code_alignment_;
  std::int64_t data_alignment_;
  Row row_;
  // Rows that DW_CFA_remember_state has stored; `depth_` is their number.
  Row remembered_[deepest_state];
  int depth_ = 0;
  // True if the table's instructions contradict each other, are unknown or end in the middle.
  bool malformed_ = false;
  // True if the table is valid, but describes something that a Rule cannot hold.
  bool not_expressible_ = false;
};

}  // namespace cuwarden::stacks
