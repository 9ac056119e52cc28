// The formats in which `cuwarden export` writes the leaks of reports for other programs.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "reporters/comparison/leaks_by_fingerprint.hpp"

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

// Declares a function for each format, with the format's name. It returns the leaks as text in that
// format.
namespace exports {
#define EXPORT(name, meaning) std::string name(const ExportedLeaks&);
#include "reporters/exports/exports.def"
}  // namespace exports

// A format in which `cuwarden export` writes leaks.
struct ExportFormat {
  // Name for the option --format; meaning of the format, as text for the help.
  std::string_view name, meaning;
  std::string (*write)(const ExportedLeaks&);  // returns the leaks in the format
};

// Returns all formats, in the order of exports.def. The span is valid for ever.
std::span<const ExportFormat> export_formats();

// Returns the format of this name, which is never destroyed; null if there is none.
const ExportFormat* export_format(std::string_view name);

}  // namespace cuwarden
