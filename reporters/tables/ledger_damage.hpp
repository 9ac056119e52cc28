// Finds signs of damage in a ledger: rows that lead nowhere, figures that no process reaches, sums
// that do not agree. The reader leaves such rows out, and a report of the rest has to say so.
#pragma once

#include <cstdint>
#include <string>

#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

struct LedgerDamage {
  bool cut_short = false;
  std::uint64_t lost_allocations = 0;  // live ones whose group cannot be read
  std::uint64_t lost_stacks = 0;       // of groups
  std::uint64_t lost_names = 0;        // of calls, settings, variables
  std::uint64_t absurd_figures = 0;
  // Live allocations by the groups' counts and by the records. Equal where nothing is damaged.
  std::uint64_t counted = 0, listed = 0;

  bool any() const noexcept;
  std::string sentence() const;  // for people
};

// `at_rest`: true if the ledger is no longer written, so that values that are read at different
// moments have to agree. Facts that a full disk or a full table kept out of the file are no damage:
// the ledger says so itself.
LedgerDamage find_damage(const ledger::Reader&, bool at_rest);

}  // namespace cuwarden
