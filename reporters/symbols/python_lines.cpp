// The formats are those of CPython's Objects/lnotab_notes.txt and Objects/locations.md.
#include "reporters/symbols/python_lines.hpp"

#include <string_view>

namespace cuwarden {
namespace {

// Reads a table byte by byte. Behind its end, all bytes are 0.
class Bytes {
 public:
  explicit Bytes(std::string_view table) : table_(table) {}
  bool any() const { return !table_.empty(); }
  std::uint8_t next() {
    if (table_.empty()) return 0;
    const auto byte = static_cast<std::uint8_t>(table_.front());
    table_.remove_prefix(1);
    return byte;
  }
  std::int8_t next_signed() { return static_cast<std::int8_t>(next()); }
  // Six bits in each byte, the lowest first; a seventh bit says that more bytes follow.
  std::uint64_t next_number() {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 60; shift += 6) {
      const std::uint8_t byte = next();
      number |= std::uint64_t{byte & 63u} << shift;
      if ((byte & 64) == 0) break;
    }
    return number;
  }
  // The lowest bit is the sign.
  std::int64_t next_signed_number() {
    const std::uint64_t number = next_number();
    const auto value = static_cast<std::int64_t>(number >> 1);
    return (number & 1) != 0 ? -value : value;
  }
  // An entry's first byte alone has its uppermost bit set.
  void skip_entry() {
    while (any() && (static_cast<std::uint8_t>(table_.front()) & 0x80) == 0)
      table_.remove_prefix(1);
  }

 private:
  std::string_view table_;
};

constexpr std::int64_t none = -1;

// Pairs of a step in bytes of bytecode and a step in lines.
std::int64_t line_by_pairs(Bytes table, std::int64_t line, std::uint64_t offset) {
  for (std::uint64_t at = 0; table.any();) {
    at += table.next();
    if (at > offset) break;
    line += table.next_signed();
  }
  return line;
}

// Pairs of steps, too, but each describes the bytes of its step. A step of -128 lines stands for
// bytes without a line.
std::int64_t line_by_ranges(Bytes table, std::int64_t line, std::uint64_t offset) {
  for (std::uint64_t at = 0; table.any();) {
    at += table.next();
    const std::int8_t step = table.next_signed();
    if (step != INT8_MIN) line += step;
    if (at > offset) return step == INT8_MIN ? none : line;
  }
  return none;
}

// Entries of variable length. The first byte has the entry's form and the number of instructions
// that it describes.
std::int64_t line_by_locations(Bytes table, std::int64_t line, std::uint64_t instruction) {
  constexpr unsigned one_line = 10, without_columns = 13, whole = 14, without_line = 15;
  for (std::uint64_t at = 0; table.any();) {
    const std::uint8_t first = table.next();
    const unsigned form = first >> 3 & 15;
    at += (first & 7u) + 1;
    if (form == without_columns || form == whole)
      line += table.next_signed_number();
    else if (form >= one_line && form < without_columns)
      line += form - one_line;
    if (at > instruction) return form == without_line ? none : line;
    table.skip_entry();
  }
  return none;
}

}  // namespace

std::uint32_t python_line(const ledger::PythonCodeView& function, std::uint32_t instruction) {
  const std::int64_t first = function.first_line;
  const Bytes table(function.lines);
  std::int64_t line = none;
  if (function.lines_format == 0)
    line = line_by_pairs(table, first, std::uint64_t{instruction} * 2);
  else if (function.lines_format == 1)
    line = line_by_ranges(table, first, std::uint64_t{instruction} * 2);
  else
    line = line_by_locations(table, first, instruction);
  return line > 0 && line <= UINT32_MAX ? static_cast<std::uint32_t>(line) : 0;
}

}  // namespace cuwarden
