// Options of a report that is made of a ledger.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "reporters/symbols/symbol_budget.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

struct ReportOptions {
  bool symbolise = true;
  // The longest that naming functions and lines may take, about; null: as long as it takes.
  std::optional<std::chrono::nanoseconds> symbol_time;
  std::size_t symbol_memory = most_symbol_memory_at_exit;  // within that time
  // End of the process (or the moment of a snapshot), since its start; now, when not given.
  std::optional<std::uint64_t> end_ns;
  // For a process that could not say it itself: `signal`, and which.
  std::optional<ledger::EndReason> end_reason;
  std::optional<int> signal;
  // The process has ended, and what is read is only what it left in the file.
  bool at_rest = false;
};

}  // namespace cuwarden
