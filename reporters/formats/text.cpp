#include "reporters/formats/formats.hpp"
#include "reporters/text/text_report.hpp"

namespace cuwarden {

std::string formats::text(const IndexedReport& report, const TextOptions& options, Told told) {
  return text_report(report, options, told);
}

}  // namespace cuwarden
