// Options of a report that is made of a ledger.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "reporters/symbols/symbol_budget.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Choices for a report that is read from a ledger.
struct ReportOptions {
  // True if functions and lines are looked up.
  bool symbolise = true;
  // Longest time for functions and lines, about; null: no limit.
  std::optional<std::chrono::nanoseconds> symbol_time;
  std::size_t symbol_memory = most_symbol_memory_at_exit;  // bytes of memory for debug information
  // End of the process or moment of the snapshot, in nanoseconds since its start; null: now.
  std::optional<std::uint64_t> end_ns;
  // Reason of the end and signal number, for a process that could not write them itself; null:
  // those in the ledger.
  std::optional<ledger::EndReason> end_reason;
  std::optional<int> signal;
  // True if the process has ended, so that the ledger does not change any more.
  bool at_rest = false;
};

}  // namespace cuwarden
