// Runs the little programs of unwind tables (DWARF 5, 6.4.2) up to an address, and says what they
// describe there as a rule. Where libgcc's unwinder differs from the letter of the standard, its
// way is taken: the stacks are to be the same.
#pragma once

#include <cstdint>

#include "runtime_hooks/stacks/cursor.hpp"
#include "runtime_hooks/stacks/rule.hpp"

namespace cuwarden::stacks {

class CfaProgram {
 public:
  // `address`: up to which row the programs run, that of `address` itself included. `function`:
  // where the description begins.
  CfaProgram(std::uint64_t address, std::uint64_t function, std::uint64_t code_alignment,
             std::int64_t data_alignment) noexcept
      : address_(address),
        location_(function),
        code_alignment_(code_alignment),
        data_alignment_(data_alignment) {}

  // First the instructions that are common to functions, then the function's own.
  void run(Cursor instructions) noexcept;

  // What holds at the address.
  Rule rule(bool signal_frame) const noexcept;

 private:
  enum class Kept : std::uint8_t { same, undefined, at_cfa, expression, otherwise };
  struct Place {
    Kept how = Kept::same;
    std::int64_t offset = 0;
    Cursor expression;
  };
  struct Row {
    bool cfa_by_expression = false;
    std::uint64_t cfa_register = 0;
    std::int64_t cfa_offset = 0;
    Cursor cfa_expression;
    Place rbp, rsp, return_address;
  };
  static constexpr int deepest_state = 8;

  void step(Cursor&) noexcept;
  void extended(std::uint8_t opcode, Cursor&) noexcept;
  void advance(std::uint64_t steps) noexcept { location_ += steps * code_alignment_; }
  void keep(std::uint64_t column, Place) noexcept;
  void keep_at(std::uint64_t column, std::uint64_t factored) noexcept;
  std::int64_t factored(std::int64_t value) const noexcept;
  Rule rule_of_signal_frame() const noexcept;
  Rule rule_of_expression() const noexcept;

  std::uint64_t address_, location_, code_alignment_;
  std::int64_t data_alignment_;
  Row row_;
  Row remembered_[deepest_state];
  int depth_ = 0;
  bool malformed_ = false;
  bool not_expressible_ = false;
};

}  // namespace cuwarden::stacks
