// The tables of one report in the form that the page reads: a list for each column, times in
// microseconds since the process's start, and stacks as numbers in the tables of the page.
#pragma once

#include <cstddef>
#include <string>

#include "reporters/exports/page/page_stacks.hpp"
#include "reporters/model/indexed_report.hpp"
#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden {

// Returns the report as a JSON object that the page reads. `path`: path of the report's file.
// `stacks`: adds the report's stacks to the tables of the page, and gives their numbers. `told`: is
// called with the number of tables that are done, and the number of all.
std::string page_report(
    const IndexedReport&, const std::string& path, StacksOfReport& stacks,
    FunctionRef<void(std::size_t tables, std::size_t all)> told = [](std::size_t, std::size_t) {});

}  // namespace cuwarden
