// Runs the instructions of unwind tables (DWARF 5, 6.4.2), to find how a stack walk gets from the
// frame of a code address to its caller's. Where libgcc's unwinder differs from the standard, this
// code does as libgcc does, so that both find the same stacks.
#pragma once

#include <cstdint>

#include "runtime_hooks/stacks/cursor.hpp"
#include "runtime_hooks/stacks/rule.hpp"

namespace cuwarden::stacks {

// Runs the instructions of a function's unwind table (DWARF 5, 6.4.2) up to a code address. rule()
// then says how a stack walk gets from the frame at this address to the caller's frame. Where
// libgcc's unwinder differs from the standard, this class does as libgcc does.
class CfaProgram {
 public:
  // `address` is the code address whose frame is to be left, and `function` the address at which
  // its function begins. `code_alignment` (bytes of code) and `data_alignment` (bytes of stack,
  // usually -8) are the units of operands, from the table's common entry (CIE).
  CfaProgram(std::uint64_t address, std::uint64_t function, std::uint64_t code_alignment,
             std::int64_t data_alignment) noexcept
      : address_(address),
        location_(function),
        code_alignment_(code_alignment),
        data_alignment_(data_alignment) {}

  // Runs `instructions`, up to the row of the table that holds for the constructor's `address`.
  // Must be called with the instructions of the common entry (CIE) first, then with those of the
  // function's own entry (FDE).
  void run(Cursor instructions) noexcept;

  // Returns the rule by which a stack walk gets from one frame to its caller's frame. It holds for
  // the code at the `address` that was given to the constructor. Must be called after run(). A
  // table that is damaged, or whose rule is of no kind that Rule has, gives
  // Rule::Special::malformed or not_expressible. `signal_frame`: true if the table marks the
  // function as the one to which signal handlers return.
  Rule rule(bool signal_frame) const noexcept;

 private:
  // Ways in which an unwind table describes a register's value in the caller's frame. `same`:
  // unchanged. `undefined`: unknown. `at_cfa`: stored at an offset from the canonical frame address
  // (CFA). `expression`: stored at an address that a DWARF expression computes. `otherwise`:
  // described in another way, which no Rule can hold.
  enum class Kept : std::uint8_t { same, undefined, at_cfa, expression, otherwise };
  // The description of one register's value in the caller's frame. `how` is its kind. With
  // `at_cfa`, the value is stored `offset` bytes from the canonical frame address (CFA). With
  // `expression`, it is stored at the address that the DWARF expression in `expression` computes. A
  // member that the kind does not use is 0 or empty.
  struct SavedRegister {
    Kept how = Kept::same;    // way in which the unwind table describes the value
    std::int64_t offset = 0;  // for `at_cfa`: bytes from the CFA to the stored value
    Cursor expression;        // for `expression`: the DWARF expression of the value's address
  };
  // A row of the unwind table: how the canonical frame address (CFA) and the caller's registers are
  // found. With `cfa_by_expression`, the CFA is the result of the DWARF expression
  // `cfa_expression`. Otherwise it is the value of the register with the DWARF number
  // `cfa_register`, plus `cfa_offset` bytes.
  struct Row {
    bool cfa_by_expression = false;          // true: the CFA is the result of `cfa_expression`
    std::uint64_t cfa_register = 0;          // DWARF number of the CFA's base register
    std::int64_t cfa_offset = 0;             // bytes from the base register's value to the CFA
    Cursor cfa_expression;                   // the CFA's DWARF expression; empty if it is not used
    SavedRegister rbp, rsp, return_address;  // the registers' values in the caller's frame
  };
  // Largest number of rows that DW_CFA_remember_state may have stored at a time. An unwind table
  // that stores more gets the rule `not_expressible`: walks end there.
  static constexpr int deepest_state = 8;

  // Reads one instruction of the unwind table and its operands from the cursor, and runs it.
  void step(Cursor&) noexcept;
  // Runs the instruction `opcode` (DW_CFA_*), whose operands are read from the cursor.
  void extended(std::uint8_t opcode, Cursor&) noexcept;
  // Moves `location_` on by `steps` units of code, each of `code_alignment_` bytes.
  void advance(std::uint64_t steps) noexcept { location_ += steps * code_alignment_; }
  // Enters into `row_`, the present row of the unwind table, how the register with the DWARF number
  // `column` is found in the caller's frame. Ignores registers other than rbp, rsp and the return
  // address.
  void keep(std::uint64_t column, SavedRegister) noexcept;
  // Enters into `row_`, the present row of the unwind table, that the register with the DWARF
  // number `column` is stored `factored` * `data_alignment_` bytes from the canonical frame address
  // (CFA). `factored` is the unsigned operand of DW_CFA_offset or DW_CFA_offset_extended.
  // Instructions with a signed operand call keep() instead.
  void keep_at(std::uint64_t column, std::uint64_t factored) noexcept;
  // Returns `value` * `data_alignment_`, in bytes; INT64_MAX if the product does not fit.
  std::int64_t factored(std::int64_t value) const noexcept;
  // Returns the rule for leaving the kernel's signal frame; a `not_expressible` one if `row_` is
  // not the description that glibc's unwind table has for this frame.
  Rule rule_of_signal_frame() const noexcept;
  // Returns the rule for leaving a frame that `row_` describes, whose canonical frame address (CFA)
  // is given by a DWARF expression; a `not_expressible` one if the expression is an unusual one, or
  // rbp is saved in an unusual way.
  Rule rule_of_expression() const noexcept;

  std::uint64_t address_;         // the code address whose row of the unwind table is wanted
  std::uint64_t location_;        // the code address that the instructions have reached so far
  std::uint64_t code_alignment_;  // bytes of code in one unit of advance()
  // Bytes of stack in one unit of the offsets in the unwind table; usually -8.
  std::int64_t data_alignment_;
  // The row of the unwind table for the code at `location_`.
  Row row_;
  // Rows of the unwind table that DW_CFA_remember_state has stored, the latest last. Only the first
  // `depth_` are in use.
  Row remembered_[deepest_state];
  int depth_ = 0;  // number of rows in `remembered_`
  // True if the table's instructions contradict each other, are unknown or end in the middle.
  bool malformed_ = false;
  // True if the table is valid, but describes something that a Rule cannot hold.
  bool not_expressible_ = false;
};

}  // namespace cuwarden::stacks
