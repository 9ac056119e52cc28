#include "tools/cuwarden/reports/parsed_report.hpp"

#include "reporters/json/read_report.hpp"
#include "tools/cuwarden/output/progress.hpp"

namespace cuwarden {

std::optional<model::Report> parse_with_progress(std::string_view content, const std::string& name,
                                                 std::string& error) {
  Progress progress("reading " + name, content.size(), Progress::Unit::bytes);
  return parse_report(content, name, error, nullptr,
                      [&](std::size_t bytes, std::size_t) { progress.done(bytes); });
}

}  // namespace cuwarden
