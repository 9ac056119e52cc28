// Runs the programs of unwind tables (DWARF 5, 6.4.2) up to an address, and returns as a rule how
// they describe the frame there. Where libgcc's unwinder differs from the standard, this does as
// libgcc does, so that both find the same stacks.
#pragma once

#include <cstdint>

#include "runtime_hooks/stacks/cursor.hpp"
#include "runtime_hooks/stacks/rule.hpp"

namespace cuwarden::stacks {

class CfaProgram {
 public:
  // The programs run up to and including the row that holds for `address`. `function` is the
  // address at which the described function begins.
  CfaProgram(std::uint64_t address, std::uint64_t function, std::uint64_t code_alignment,
             std::int64_t data_alignment) noexcept
      : address_(address),
        location_(function),
        code_alignment_(code_alignment),
        data_alignment_(data_alignment) {}

  // Runs a program of instructions. Call it with the common entry's instructions first, then with
  // the function's own.
  void run(Cursor instructions) noexcept;

  // Returns the rule that holds at the address. `signal_frame`: true if the table marks the
  // function as a signal frame.
  Rule rule(bool signal_frame) const noexcept;

 private:
  // Methods to find a register's value in the caller: it is the same, it is undefined, it is stored
  // at the CFA plus an offset, its address is given by an expression, or something else.
  enum class Kept : std::uint8_t { same, undefined, at_cfa, expression, otherwise };
  // The method for one register, with the offset (bytes from the CFA) or the expression that
  // belongs to it.
  struct SavedRegister {
    Kept how = Kept::same;
    std::int64_t offset = 0;
    Cursor expression;
  };
  // The row of the unwind table that holds at the current location.
  struct Row {
    bool cfa_by_expression = false;
    std::uint64_t cfa_register = 0;
    std::int64_t cfa_offset = 0;
    Cursor cfa_expression;
    SavedRegister rbp, rsp, return_address;
  };
  // The most nested DW_CFA_remember_state instructions that can be followed.
  static constexpr int deepest_state = 8;

  void step(Cursor&) noexcept;
  void extended(std::uint8_t opcode, Cursor&) noexcept;
  void advance(std::uint64_t steps) noexcept { location_ += steps * code_alignment_; }
  void keep(std::uint64_t column, SavedRegister) noexcept;
  void keep_at(std::uint64_t column, std::uint64_t factored) noexcept;
  std::int64_t factored(std::int64_t value) const noexcept;
  Rule rule_of_signal_frame() const noexcept;
  Rule rule_of_expression() const noexcept;

  std::uint64_t address_, location_, code_alignment_;
  std::int64_t data_alignment_;
  Row row_;
  Row remembered_[deepest_state];
  int depth_ = 0;
  // True if the tables make no sense.
  bool malformed_ = false;
  // True if the tables use something that a Rule cannot express.
  bool not_expressible_ = false;
};

}  // namespace cuwarden::stacks
