// Finds signs of damage in a ledger: rows that lead nowhere, figures that no process reaches, sums
// that do not agree. The reader leaves such rows out, and a report of the rest has to say so.
#pragma once

#include <cstdint>
#include <string>

#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Damage that was found in a ledger's file; all zero if there is none.
struct LedgerDamage {
  // True if the file is shorter than its header says.
  bool cut_short = false;
  std::uint64_t lost_allocations = 0;  // live allocations whose group cannot be read
  std::uint64_t lost_stacks = 0;       // stacks of groups that cannot be read
  std::uint64_t lost_names = 0;        // names of calls, settings and variables that cannot be read
  // Numbers that no process can have.
  std::uint64_t absurd_figures = 0;
  // Number of live allocations by the groups' counters, and by the records. They are equal in an
  // undamaged ledger.
  std::uint64_t counted = 0, listed = 0;

  // True if any damage was found.
  bool any() const noexcept;
  std::string sentence() const;  // the damage in a sentence for people
};

// `at_rest`: true if the ledger is no longer written, so that values that are read at different
// moments have to agree. Facts that a full disk or a full table kept out of the file are no damage:
// the ledger says so itself.
LedgerDamage find_damage(const ledger::Reader&, bool at_rest);

}  // namespace cuwarden
