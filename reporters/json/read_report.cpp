#include "reporters/json/read_report.hpp"

#include <algorithm>

#include "reporters/files/given_file.hpp"
#include "reporters/json/json_bounds.hpp"
#include "reporters/labels/report_frames.hpp"

namespace cuwarden {
namespace {

constexpr const char* advice = "; give the path of a report that cuwarden wrote";

}  // namespace

std::string name_of_input(const std::string& path) {
  return path == "-" ? "standard input" : path.empty() ? "''" : path;
}

std::optional<std::string> load_content(const std::string& path, std::string& error,
                                        std::size_t most_bytes) {
  std::optional<std::string> content(std::in_place);
  const std::string wrong = read_object_file(path, std::min(most_bytes, largest_report), *content);
  if (wrong.empty()) return content;
  error = name_of_input(path) + ": " + wrong + advice;
  return std::nullopt;
}

std::optional<model::Report> load_report(const std::string& path, std::string& error,
                                         std::size_t most_bytes) {
  const auto content = load_content(path, error, most_bytes);
  return content ? parse_report(*content, name_of_input(path), error) : std::nullopt;
}

std::optional<model::Report> parse_report(std::string_view content, const std::string& path,
                                          std::string& error, Json* json) {
  if (const std::string wrong = wrong_outline(content); !wrong.empty()) {
    error = path + ": " + wrong + advice;
    return std::nullopt;
  }
  Json root = Json::parse(content, nullptr, false);
  const auto schema = root.find("schema");
  if (schema != root.end() && schema->is_string() &&
      schema->get_ref<const std::string&>().starts_with("cuwarden.merged/")) {
    error = path + ": it is a merged report, and this needs the reports themselves";
    return std::nullopt;
  }
  if (schema == root.end() || !schema->is_string() ||
      !schema->get_ref<const std::string&>().starts_with("cuwarden.report/")) {
    error = path + ": not a cuwarden report (it has no \"schema\": \"cuwarden.report/1\")";
    return std::nullopt;
  }
  if (*schema != model::report_schema) {
    error = path + ": its schema is " + schema->get<std::string>() +
            ", and this cuwarden reads cuwarden.report/1; use the version that wrote it";
    return std::nullopt;
  }
  std::optional<model::Report> report(std::in_place);
  if (const auto wrong = parse(root, *report)) {
    error = path + ": a damaged report (" + wrong->substr(wrong->find_first_not_of('.')) +
            "); have it written again, or use a copy";
    return std::nullopt;
  }
  label_old_report(*report);
  if (json != nullptr) *json = std::move(root);
  return report;
}

}  // namespace cuwarden
