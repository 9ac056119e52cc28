// The formats in which `cuwarden export` writes reports for other programs.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "reporters/comparison/leaks_by_fingerprint.hpp"
#include "reporters/files/output.hpp"
#include "reporters/model/indexed_report.hpp"

namespace cuwarden {

// Leaks to be written.
struct ExportedLeaks {
  LeaksByFingerprint leaks;
  LeaksByFingerprint known;  // leaks of the baseline, which are no failures; empty: none
};

// Returns "known" for a leak of the baseline, or "known, but grown from 6.0 MiB in 3 allocations";
// empty if the baseline does not have the fingerprint.
std::string words_about_known(const ExportedLeaks&, const std::string& fingerprint,
                              const FingerprintedLeak&);

// Function of a format that has the sums of leaks. Returns the leaks as text in that format.
using WriteLeaks = std::string(const ExportedLeaks&);
// Function of a format that is written report by report, so that any number of reports takes the
// memory of one. Writes the report to the output. `path`: path of the report's file. The caller
// calls Output::finish() after the last report.
using WriteReport = void(const IndexedReport&, const std::string& path, Output&);

// Declares a function for each format, with the format's name.
namespace exports {
#define EXPORT(name, type, meaning) type name;
#include "reporters/exports/exports.def"
}  // namespace exports

// A format in which `cuwarden export` writes reports.
struct ExportFormat {
  // Name for the option --format; meaning of the format, as text for the help.
  std::string_view name, meaning;
  std::variant<WriteLeaks*, WriteReport*> write;  // the format's function; never null
};

// Returns all formats, in the order of exports.def. The span is valid for ever.
std::span<const ExportFormat> export_formats();

// Returns the format of this name, which is never destroyed; null if there is none.
const ExportFormat* export_format(std::string_view name);

}  // namespace cuwarden
