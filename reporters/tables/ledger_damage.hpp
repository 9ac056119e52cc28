// Finds signs of damage in a ledger file: references to rows that do not exist, figures that no
// process reaches, sums that do not agree. Reports leave damaged rows out, so they have to say so.
#pragma once

#include <cstdint>
#include <string>

#include "reporters/model/row_progress.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Damage that was found in a ledger's file; all members are 0 or false if none was found.
struct LedgerDamage {
  // True if the ledger's file is shorter than its header says.
  bool cut_short = false;
  // Number of live allocations whose group (stack, function, kind and device) cannot be read.
  std::uint64_t lost_allocations = 0;
  // Number of groups of allocations whose call stack cannot be read.
  std::uint64_t lost_stacks = 0;
  // Number of names that cannot be read (of CUDA functions, settings and environment variables),
  // plus the number of groups of allocations whose CUDA function is unknown.
  std::uint64_t lost_names = 0;
  // Number of figures that no process can have, such as a size above 2^53 bytes.
  std::uint64_t absurd_figures = 0;
  // Number of live allocations: `counted` is the sum of all groups' counters, `listed` the number
  // of rows for single allocations. They may differ by one for each thread, since a kill may come
  // between a row and its counter. Both are 0 if they differ by no more. Both are also 0 if they
  // were not compared: the ledger is still written, or says itself that rows or names are missing.
  std::uint64_t counted = 0, listed = 0;

  // True if any damage was found.
  bool any() const noexcept;
  // Returns a sentence for the report that says what is damaged. To be called only if any() is
  // true.
  std::string sentence() const;
};

// Returns the damage that is found in a ledger. `at_rest`: true if no process writes the ledger any
// more, so that its counters and its rows have to agree. Rows that could not be written, because
// the disk or a table was full, are no damage: the ledger itself says that they are missing.
// `done`: is called for each record of an allocation, in one pass.
LedgerDamage find_damage(
    const ledger::Reader&, bool at_rest, RowDone done = [] {});

}  // namespace cuwarden
