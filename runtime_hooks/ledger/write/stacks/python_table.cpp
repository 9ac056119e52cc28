#include "runtime_hooks/ledger/write/stacks/python_table.hpp"

#include "runtime_hooks/core/hash.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"

namespace cuwarden::ledger {
namespace {

std::string_view bytes_of(std::span<const std::uint8_t> lines) {
  return {reinterpret_cast<const char*>(lines.data()), lines.size()};
}

}  // namespace

std::uint32_t PythonTable::find(std::uint64_t hash, const PythonFunction& function) const noexcept {
  const PythonCode* const rows = storage_.rows<PythonCode>(RegionId::python_codes);
  const char* const strings = storage_.rows<char>(RegionId::strings);
  const auto is = [&](StringRef text, std::string_view wanted) {
    return std::string_view(strings + text.offset, text.length) == wanted;
  };
  return ids_.find(hash, [&](std::uint32_t row) {
    const PythonCode& code = rows[row];
    return code.first_line == function.first_line && code.lines_format == function.lines_format &&
           is(code.function, function.name) && is(code.file, function.file) &&
           is(code.lines, bytes_of(function.lines));
  });
}

std::uint32_t PythonTable::intern(const PythonFunction& function) noexcept {
  std::uint64_t hash = hash_bytes(function.first_line, function.file.data(), function.file.size());
  hash = hash_bytes(hash, function.name.data(), function.name.size());
  hash = hash_bytes(hash, function.lines.data(), function.lines.size());
  if (const std::uint32_t row = find(hash, function)) return row;
  const LedgerLocked locked(ids_.lock(), storage_);
  if (!locked) return 0;
  if (const std::uint32_t row = find(hash, function)) return row;
  // Without a row, no text is stored: others may need the room.
  const auto row = static_cast<std::uint32_t>(storage_.allocate(RegionId::python_codes, 1));
  if (row == 0) {
    storage_.add_reason(reason_names_missing);
    return 0;
  }
  PythonCode& code = storage_.rows<PythonCode>(RegionId::python_codes)[row];
  code.first_line = function.first_line;
  code.lines_format = function.lines_format;
  code.file = storage_.store(function.file);
  code.function = storage_.store(function.name);
  code.lines = storage_.store(bytes_of(function.lines));
  code.state.store(1, std::memory_order_release);
  ids_.insert(hash, row);
  return row;
}

}  // namespace cuwarden::ledger
