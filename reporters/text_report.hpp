// The summary of a report for people: what leaks, how much, from where.
#pragma once

#include <cstdint>
#include <string>

#include "reporters/report_document.hpp"

namespace cuwarden {

enum class GroupBy : std::uint8_t { stack, module, api, kind };

struct TextOptions {
  GroupBy by = GroupBy::stack;
  std::size_t top = 10;         // 0: all
  std::uint64_t min_bytes = 0;  // leave out smaller groups
  std::string module;           // only groups whose module's path contains this; empty: all
  bool colour = false;
};

// Throws nlohmann::json::exception when a table is not what the schema says.
std::string text_report(const ReportDocument&, const TextOptions&);

}  // namespace cuwarden
