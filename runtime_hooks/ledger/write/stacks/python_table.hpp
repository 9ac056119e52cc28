// The ledger's table of Python functions. Functions with equal contents share one row. So call
// stacks are equal even if a Python file was loaded again.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime_hooks/ledger/storage/id_table.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"

namespace cuwarden::ledger {

// A Python function to be stored in the ledger, which copies its texts and bytes.
struct PythonFunction {
  // Path of the source file, and qualified name of the function (before Python 3.11, its plain
  // name). Both are in UTF-8, not owned, and empty if not known.
  std::string_view file, name;
  std::uint32_t first_line = 0;  // line of the source file at which the function begins, from 1
  // CPython's table that maps the function's instructions to lines of the source file.
  std::span<const std::uint8_t> lines;
  // Format of `lines`: 0: that of Python 3.9; 1: that of 3.10; 2: that of later versions.
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
  // Returns the row of the function, and stores the function if it is new. Returns 0 if there is no
  // room (reason_names_missing) or the table's lock cannot be had.
  std::uint32_t intern(const PythonFunction&) noexcept;

 private:
  // Returns the row of a function with equal contents; 0 if there is none. `hash`: hash of the
  // function's texts, first line and lines, as intern() computes it.
  std::uint32_t find(std::uint64_t hash, const PythonFunction&) const noexcept;

  Storage& storage_;  // the memory of the ledger, with its tables
  IdTable ids_;       // rows of functions by the hash of their contents; its lock guards the rows
};

}  // namespace cuwarden::ledger
