// The options with which a report is made from a ledger.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "reporters/symbols/symbol_budget.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

class Naming;

// Options for making a report from a ledger, and facts about the end of the ledger's process that
// the ledger may lack.
struct ReportOptions {
  // True if functions and lines of source code are looked up for the code addresses on call stacks.
  bool symbolise = true;
  // Object that looks up the names, and keeps the files that it has read for later reports; the
  // caller owns it. Null: the names are looked up within the limits symbol_time and symbol_memory.
  Naming* naming = nullptr;
  // Approximate limit of the time for looking up functions and lines. Null: neither the time nor
  // the memory (symbol_memory) is limited. No effect if `naming` is set, which has limits of its
  // own.
  std::optional<std::chrono::nanoseconds> symbol_time;
  // Most bytes of memory that reading debug information may take. No effect if symbol_time is null,
  // or if `naming` is set.
  std::size_t symbol_memory = most_symbol_memory_at_exit;
  // Time of the process's end, or of the report if the process still runs, in nanoseconds since the
  // process's start. Null: the present time.
  std::optional<std::uint64_t> end_ns;
  // Reason of the process's end, if the process could not write it to its ledger. `running`: the
  // process still runs, and another process makes the report. Null: the reason in the ledger
  // counts.
  std::optional<ledger::EndReason> end_reason;
  // Number of the signal that killed the process; null: no signal did, or the number is unknown.
  std::optional<int> signal;
  // True if the process has ended, so that no process writes the ledger any more.
  bool at_rest = false;
  // Function that is called now and then with the progress of making the report. `what`: the work
  // in words. `done` and `all`: number of its parts that are done, and of all its parts. Empty:
  // none is called.
  std::function<void(const char* what, std::size_t done, std::size_t all)> told{};
};

}  // namespace cuwarden
