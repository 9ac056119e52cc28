// The formats in which `cuwarden report` shows a report.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "reporters/model/indexed_report.hpp"
#include "reporters/text/text_report.hpp"

namespace cuwarden {

// The functions that write a report in a format. A format may ignore options that mean nothing in
// it.
namespace formats {
#define FORMAT(name, meaning) std::string name(const IndexedReport&, const TextOptions&);
#include "reporters/formats/formats.def"
}  // namespace formats

struct Format {
  std::string_view name, meaning;
  std::string (*write)(const IndexedReport&, const TextOptions&);
};

// Returns all formats; the first is the default.
std::span<const Format> report_formats();

// Returns the format of that name; null if there is none.
const Format* report_format(std::string_view name);

}  // namespace cuwarden
