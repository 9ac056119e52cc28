// The formats in which `cuwarden report` shows a report.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "reporters/model/indexed_report.hpp"
#include "reporters/model/row_progress.hpp"
#include "reporters/text/text_report.hpp"

namespace cuwarden {

// Functions that return a report in a format. Each format of formats.def has one, which has the
// format's name. A format may ignore options that mean nothing in it. The function calls the last
// argument now and then with the progress.
namespace formats {
#define FORMAT(name, meaning) std::string name(const IndexedReport&, const TextOptions&, Told);
#include "reporters/formats/formats.def"
}  // namespace formats

// A format in which `cuwarden report` shows a report.
struct Format {
  // name: name of the format, for the option --format. meaning: what the format is for, as text for
  // the help.
  std::string_view name, meaning;
  // Returns a report in the format. `told`: is called now and then with the progress.
  std::string (*write)(const IndexedReport&, const TextOptions&, Told told);
};

// Returns all formats, in the order of formats.def. The first format is used unless the user asks
// for another. The span is valid for ever.
std::span<const Format> report_formats();

// Returns the format of this name; null if there is none. The format is never destroyed.
const Format* report_format(std::string_view name);

}  // namespace cuwarden
