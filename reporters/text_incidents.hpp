// The part of the text report about requests that were refused.
#pragma once

#include <string>

#include "reporters/report_document.hpp"
#include "reporters/text_elements.hpp"

namespace cuwarden {

void add_incidents(const ReportDocument&, const Paint&, std::string& text);

}  // namespace cuwarden
