// Results of a search of the process's memory for pointers to its allocations.
#pragma once

#include <cstdint>
#include <string_view>

namespace cuwarden {

// Result of a search of the process's memory for pointers to an allocation. The ledger stores these
// values.
enum class Reach : std::uint8_t {
  // No search was made since the allocation, or the record is of memory that is not searched for:
  // implicit memory, a framework's block, or memory whose bytes another record counts.
  not_looked_for,
  reachable,  // a pointer to the allocation's start, or its handle, was found
  interior,   // only pointers into its middle were found
  lost,       // no pointer was found
  // The search was not complete, or found only numbers that may be no pointers of the program's.
  unknown,
};
inline constexpr std::uint8_t reach_count = 5;  // number of enumerators of Reach

// Names of the results in reports, by Reach.
inline constexpr std::string_view reach_names[reach_count] = {"", "reachable", "interior", "lost",
                                                              "unknown"};

// Returns the result's name in reports; empty for not_looked_for.
constexpr std::string_view reach_name(Reach reach) {
  return reach_names[static_cast<std::uint8_t>(reach)];
}

// The way in which a search of the process's memory for pointers to its allocations ended. The
// ledger stores these values.
enum class ReachSearch : std::uint8_t {
  not_made,         // no search was made
  complete,         // all memory was looked at
  switched_off,     // CUWARDEN_REACHABILITY=off
  out_of_time,      // the search's time was over before all memory was looked at
  pages_swapped,    // pages were in swap space, and were not looked at
  pages_unknown,    // the kernel did not show which pages are in memory, or refused to read them
  records_unknown,  // the form of the driver's own records of blocks could not be learned
  no_memory,        // there was too little memory for the search
  // a Python interpreter had freed its objects, and the pointers in them, before the search
  interpreter_ended,
};
inline constexpr std::uint8_t reach_search_count = 9;  // number of enumerators of ReachSearch

}  // namespace cuwarden
