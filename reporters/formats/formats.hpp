// The formats in which `cuwarden report` shows a report.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "reporters/model/indexed_report.hpp"
#include "reporters/text/text_report.hpp"

namespace cuwarden {

// Declares, for each format, the function of the format's name, which returns a report in this
// format. A format may ignore options that mean nothing in it.
namespace formats {
#define FORMAT(name, meaning) std::string name(const IndexedReport&, const TextOptions&);
#include "reporters/formats/formats.def"
}  // namespace formats

// A format in which `cuwarden report` shows a report.
struct Format {
  // Name for the option --format; meaning of the format, as text for the help.
  std::string_view name, meaning;
  std::string (*write)(const IndexedReport&, const TextOptions&);  // returns a report in the format
};

// Returns all formats, in the order of formats.def. The one at the beginning is used unless the
// user asks for another. The span is valid for ever.
std::span<const Format> report_formats();

// Returns the format of this name, which is never destroyed; null if there is none.
const Format* report_format(std::string_view name);

}  // namespace cuwarden
