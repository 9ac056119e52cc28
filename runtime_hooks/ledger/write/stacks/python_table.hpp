// The ledger's table of Python functions. Functions with equal contents have one row, so that a
// file that is loaded again gives the same stacks.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime_hooks/ledger/storage/id_table.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"

namespace cuwarden::ledger {

// A Python function to be stored. The texts and bytes are copied.
struct PythonFunction {
  std::string_view file, name;
  std::uint32_t first_line = 0;
  // Bytes that map instructions to lines, and their format (PythonCode::lines_format).
  std::span<const std::uint8_t> lines;
  std::uint32_t lines_format = 0;
};

// Stores Python functions in the ledger. After create(), all threads may call intern() at any time.
class PythonTable {
 public:
  // `storage`: the memory of the ledger; must outlive the object.
  explicit PythonTable(Storage& storage) noexcept : storage_(storage) {}
  // Maps memory for the index. Must be called before other functions. Returns false if there is no
  // memory.
  bool create() noexcept { return ids_.create(); }
  // Returns the row of the function, and stores it if it is new. Returns 0 if there is no room
  // (reason_names_missing) or the table's lock cannot be had.
  std::uint32_t intern(const PythonFunction&) noexcept;

 private:
  std::uint32_t find(std::uint64_t hash, const PythonFunction&) const noexcept;

  Storage& storage_;
  IdTable ids_;  // rows by the hash of their contents; its lock guards this table
};

}  // namespace cuwarden::ledger
