#include "runtime_hooks/stacks/cfa_program.hpp"

namespace cuwarden::stacks {
namespace {

// Column numbers of registers on x86-64 (psABI, 3.36).
constexpr std::uint64_t rbp_column = 6, rsp_column = 7, return_address_column = 16;

// Opcodes DW_CFA_*. Three of them have an operand in their low six bits.
constexpr std::uint8_t primary = 0xc0, advance_loc = 0x40, offset = 0x80, restore = 0xc0;
enum Opcode : std::uint8_t {
  nop = 0x00,
  set_loc = 0x01,
  advance_loc1 = 0x02,
  advance_loc2 = 0x03,
  advance_loc4 = 0x04,
  offset_extended = 0x05,
  restore_extended = 0x06,
  undefined = 0x07,
  same_value = 0x08,
  in_register = 0x09,
  remember_state = 0x0a,
  restore_state = 0x0b,
  def_cfa = 0x0c,
  def_cfa_register = 0x0d,
  def_cfa_offset = 0x0e,
  def_cfa_expression = 0x0f,
  expression = 0x10,
  offset_extended_sf = 0x11,
  def_cfa_sf = 0x12,
  def_cfa_offset_sf = 0x13,
  val_offset = 0x14,
  val_offset_sf = 0x15,
  val_expression = 0x16,
  gnu_args_size = 0x2e,
  gnu_negative_offset_extended = 0x2f,
};

// Opcodes DW_OP_*.
constexpr std::uint8_t op_deref = 0x06, op_and = 0x1a, op_plus = 0x22, op_shl = 0x24, op_ge = 0x2a,
                       op_lit0 = 0x30, op_breg0 = 0x70;

// True if the whole expression is "register + distance"; writes the distance in bytes.
bool is_register_plus(Cursor expression, std::uint64_t column, std::int64_t& distance) {
  if (expression.byte() != op_breg0 + column) return false;
  distance = expression.signed_leb();
  return expression.good() && expression.at_end();
}

// True if the whole expression is "the word stored at register + distance"; writes the distance in
// bytes.
bool is_stored_at(Cursor expression, std::uint64_t column, std::int64_t& distance) {
  if (expression.byte() != op_breg0 + column) return false;
  distance = expression.signed_leb();
  return expression.byte() == op_deref && expression.good() && expression.at_end();
}

// True if the expression is what linkers write for the 16-byte stubs of a procedure linkage table:
// rsp + 8 + ((rip & 15) >= threshold) * 8. Writes the threshold.
bool is_plt(Cursor expression, std::uint32_t& threshold) {
  if (expression.byte() != op_breg0 + rsp_column || expression.signed_leb() != 8) return false;
  if (expression.byte() != op_breg0 + return_address_column || expression.signed_leb() != 0)
    return false;
  if (expression.byte() != op_lit0 + 15 || expression.byte() != op_and) return false;
  const std::uint8_t literal = expression.byte();
  if (literal < op_lit0 || literal > op_lit0 + 15) return false;
  threshold = std::uint32_t{literal} - op_lit0;
  return expression.byte() == op_ge && expression.byte() == op_lit0 + 3 &&
         expression.byte() == op_shl && expression.byte() == op_plus && expression.good() &&
         expression.at_end();
}

}  // namespace

std::int64_t CfaProgram::factored(std::int64_t value) const noexcept {
  std::int64_t product = 0;
  // An overflow is nonsense in the table; the result is farther away than any rule can express.
  if (__builtin_mul_overflow(value, data_alignment_, &product)) return INT64_MAX;
  return product;
}

void CfaProgram::keep(std::uint64_t column, SavedRegister saved) noexcept {
  if (column == rbp_column) row_.rbp = saved;
  if (column == rsp_column) row_.rsp = saved;
  if (column == return_address_column) row_.return_address = saved;
}

void CfaProgram::keep_at(std::uint64_t column, std::uint64_t words) noexcept {
  keep(column, {Kept::at_cfa, factored(static_cast<std::int64_t>(words)), {}});
}

void CfaProgram::run(Cursor instructions) noexcept {
  while (!instructions.at_end() && location_ <= address_ && !malformed_ && !not_expressible_)
    step(instructions);
  if (!instructions.good()) malformed_ = true;
}

void CfaProgram::step(Cursor& from) noexcept {
  const std::uint8_t opcode = from.byte();
  const std::uint8_t operand = opcode & static_cast<std::uint8_t>(~primary);
  switch (opcode & primary) {
    case advance_loc:
      advance(operand);
      return;
    case offset:
      keep_at(operand, from.unsigned_leb());
      return;
    case restore:
      // As in libgcc, the register keeps the value that it had in the caller, not the one
      // that the common instructions gave it.
      keep(operand, {});
      return;
    default:
      extended(opcode, from);
  }
}

void CfaProgram::extended(std::uint8_t opcode, Cursor& from) noexcept {
  std::uint64_t column = 0;
  switch (opcode) {
    case nop:
      return;
    case advance_loc1:
      return advance(from.byte());
    case advance_loc2:
      return advance(from.fixed<std::uint16_t>());
    case advance_loc4:
      return advance(from.fixed<std::uint32_t>());
    case offset_extended:
      column = from.unsigned_leb();
      return keep_at(column, from.unsigned_leb());
    case restore_extended:
    case same_value:
      return keep(from.unsigned_leb(), {});
    case undefined:
      return keep(from.unsigned_leb(), {Kept::undefined, 0, {}});
    case in_register:
      column = from.unsigned_leb();
      from.unsigned_leb();
      return keep(column, {Kept::otherwise, 0, {}});
    case remember_state:
      if (depth_ == deepest_state) {
        not_expressible_ = true;
        return;
      }
      remembered_[depth_++] = row_;
      return;
    case restore_state:
      if (depth_ == 0)
        malformed_ = true;
      else
        row_ = remembered_[--depth_];
      return;
    case def_cfa:
      row_.cfa_register = from.unsigned_leb();
      row_.cfa_offset = static_cast<std::int64_t>(from.unsigned_leb());
      row_.cfa_by_expression = false;
      return;
    case def_cfa_register:
      row_.cfa_register = from.unsigned_leb();
      row_.cfa_by_expression = false;
      return;
    case def_cfa_offset:
      row_.cfa_offset = static_cast<std::int64_t>(from.unsigned_leb());
      return;
    case def_cfa_expression:
      row_.cfa_expression = from.block();
      row_.cfa_by_expression = true;
      return;
    case expression:
      column = from.unsigned_leb();
      return keep(column, {Kept::expression, 0, from.block()});
    case offset_extended_sf:
      column = from.unsigned_leb();
      return keep(column, {Kept::at_cfa, factored(from.signed_leb()), {}});
    case def_cfa_sf:
      row_.cfa_register = from.unsigned_leb();
      row_.cfa_offset = factored(from.signed_leb());
      row_.cfa_by_expression = false;
      return;
    case def_cfa_offset_sf:
      row_.cfa_offset = factored(from.signed_leb());
      return;
    case val_offset:
    case val_offset_sf:
      column = from.unsigned_leb();
      from.unsigned_leb();  // A signed number is as long as an unsigned one.
      return keep(column, {Kept::otherwise, 0, {}});
    case val_expression:
      column = from.unsigned_leb();
      from.block();
      return keep(column, {Kept::otherwise, 0, {}});
    case gnu_args_size:
      from.unsigned_leb();
      return;
    case gnu_negative_offset_extended:
      column = from.unsigned_leb();
      return keep(column,
                  {Kept::at_cfa, -factored(static_cast<std::int64_t>(from.unsigned_leb())), {}});
    case set_loc:
      // No compiler writes this instruction, and its encoding depends on the table.
      not_expressible_ = true;
      return;
    default:
      malformed_ = true;  // At such an instruction libgcc aborts the process.
  }
}

// Returns the rule for a signal frame. The kernel puts a ucontext where the handler returns to, and
// glibc's table describes it register by register. The description is compared with what the kernel
// does: any other one would have to be evaluated.
Rule CfaProgram::rule_of_signal_frame() const noexcept {
  constexpr std::int64_t rbp_at = 120, rsp_at = 160, rip_at = 168;  // Offsets in the ucontext.
  std::int64_t cfa = 0, rbp = 0, rip = 0;
  const bool usual = row_.cfa_by_expression && is_stored_at(row_.cfa_expression, rsp_column, cfa) &&
                     cfa == rsp_at && row_.rbp.how == Kept::expression &&
                     is_register_plus(row_.rbp.expression, rsp_column, rbp) && rbp == rbp_at &&
                     row_.return_address.how == Kept::expression &&
                     is_register_plus(row_.return_address.expression, rsp_column, rip) &&
                     rip == rip_at;
  return Rule(usual ? Rule::Special::signal_frame : Rule::Special::not_expressible);
}

// Returns the rule for a CFA that is given by an expression. GCC writes one after it has realigned
// the stack: the CFA is stored, and the saved rbp's address is relative to rbp.
Rule CfaProgram::rule_of_expression() const noexcept {
  std::int64_t cfa = 0, rbp = 0;
  std::uint32_t threshold = 0;
  const bool rbp_is_same = row_.rbp.how == Kept::same || row_.rbp.how == Kept::undefined;
  if (is_plt(row_.cfa_expression, threshold) && rbp_is_same)
    return Rule(Rule::Special::plt, threshold);
  if (is_stored_at(row_.cfa_expression, rbp_column, cfa)) {
    if (rbp_is_same) return Rule::framed(Rule::Base::stored_at_rbp, cfa, false, 0);
    if (row_.rbp.how == Kept::expression && is_register_plus(row_.rbp.expression, rbp_column, rbp))
      return Rule::framed(Rule::Base::stored_at_rbp, cfa, true, rbp);
  }
  return Rule(Rule::Special::not_expressible);
}

Rule CfaProgram::rule(bool signal_frame) const noexcept {
  if (malformed_) return Rule(Rule::Special::malformed);
  if (not_expressible_) return Rule(Rule::Special::not_expressible);
  if (row_.return_address.how == Kept::undefined) return Rule(Rule::Special::end);
  if (signal_frame) return rule_of_signal_frame();
  const bool usual = row_.return_address.how == Kept::at_cfa && row_.return_address.offset == -8 &&
                     (row_.rsp.how == Kept::same || row_.rsp.how == Kept::undefined);
  if (!usual) return Rule(Rule::Special::not_expressible);
  if (row_.cfa_by_expression) return rule_of_expression();
  const bool by_rsp = row_.cfa_register == rsp_column;
  if (!by_rsp && row_.cfa_register != rbp_column) return Rule(Rule::Special::not_expressible);
  const Rule::Base base = by_rsp ? Rule::Base::rsp : Rule::Base::rbp;
  switch (row_.rbp.how) {
    case Kept::same:
    case Kept::undefined:
      return Rule::framed(base, row_.cfa_offset, false, 0);
    case Kept::at_cfa:
      return Rule::framed(base, row_.cfa_offset, true, row_.rbp.offset);
    default:
      return Rule(Rule::Special::not_expressible);
  }
}

}  // namespace cuwarden::stacks
