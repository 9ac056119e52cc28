#include "reporters/json/read_report.hpp"

#include <algorithm>
#include <utility>

#include "reporters/files/given_file.hpp"
#include "reporters/json/json_bounds.hpp"
#include "reporters/json/report_rows.hpp"
#include "reporters/json/told_text.hpp"
#include "reporters/labels/report_frames.hpp"

namespace cuwarden {
namespace {

constexpr const char* what_to_give = "; give the path of a report that cuwarden wrote";
constexpr const char* what_to_copy =
    "; copy the report again, or use `cuwarden recover` if the ledger of its process is left";

// Moves the tables of one report into the other.
void move_tables(model::Report& from, model::Report& to) {
  from.pass_fields([&](auto&... sources) {
    to.pass_fields([&](auto&... targets) {
      const auto move_table = [](auto& source, auto& target) {
        if constexpr (requires {
                        source.reserve(0);
                        source.front().field_list;
                      })
          target = std::move(source);
      };
      (move_table(sources, targets), ...);
    });
  });
}

}  // namespace

std::string name_of_input(const std::string& path) {
  return path == "-" ? "standard input" : path.empty() ? "''" : path;
}

std::optional<std::string> load_content(const std::string& path, std::string& error,
                                        std::size_t most_bytes) {
  std::optional<std::string> content(std::in_place);
  const std::string wrong = read_object_file(path, std::min(most_bytes, largest_report), *content);
  if (wrong.empty()) return content;
  error = name_of_input(path) + ": " + wrong + what_to_give;
  return std::nullopt;
}

std::optional<model::Report> load_report(const std::string& path, std::string& error,
                                         std::size_t most_bytes) {
  const auto content = load_content(path, error, most_bytes);
  return content ? parse_report(*content, name_of_input(path), error) : std::nullopt;
}

std::optional<model::Report> parse_report(std::string_view content, const std::string& path,
                                          std::string& error, Json* json, ReadBytes read) {
  RowsOfTables rows;
  // The text is read twice. The JSON that is made of it, if the caller wants it, is passed over.
  const std::size_t size = content.size(), passes = json == nullptr ? 2 : 3;
  const auto first = [&](std::size_t bytes) { read(bytes / passes, size); };
  const auto second = [&](std::size_t bytes) { read((size + bytes) / passes, size); };
  const auto third = [&](std::size_t done, std::size_t all) {
    if (json != nullptr && all != 0) read((2 * size + size * done / all) / passes, size);
  };
  if (const WrongOutline wrong = wrong_outline(content, largest_tree, first, &rows);
      !wrong.reason.empty()) {
    error = path + ": " + wrong.reason + (wrong.is_cut_off ? what_to_copy : what_to_give);
    return std::nullopt;
  }
  ParsedRows parsed;
  if (json == nullptr) {
    parsed = parse_rows(content, rows, second);
  } else {
    const ToldText told(content, second);
    parsed.rest = Json::parse(told.begin(), told.end(), nullptr, false);
  }
  Json& root = parsed.rest;
  const auto schema = root.find("schema");
  if (schema != root.end() && schema->is_string() &&
      schema->get_ref<const std::string&>().starts_with("cuwarden.merged/")) {
    error = path + ": it is a merged report, and this needs the reports themselves";
    return std::nullopt;
  }
  if (schema == root.end() || !schema->is_string() ||
      !schema->get_ref<const std::string&>().starts_with("cuwarden.report/")) {
    error = path + ": not a cuwarden report (it has no \"schema\": \"cuwarden.report/1\")" +
            what_to_give;
    return std::nullopt;
  }
  if (*schema != model::report_schema) {
    error = path + ": its schema is " + schema->get<std::string>() +
            ", and this cuwarden reads cuwarden.report/1; use the version that wrote it";
    return std::nullopt;
  }
  std::optional<model::Report> report(std::in_place);
  Complaint wrong = std::move(parsed.wrong);
  std::size_t all_rows = 0;
  for (const auto& [table, count] : rows) all_rows += count;
  RowProgress done(all_rows, 1, third);
  if (!wrong) wrong = parse(root, *report, done);
  if (wrong) {
    error = path + ": a damaged report (" + wrong->substr(wrong->find_first_not_of('.')) +
            "); have it written again, or use a copy";
    return std::nullopt;
  }
  if (json == nullptr) move_tables(parsed.tables, *report);
  label_old_report(*report);
  if (json != nullptr) *json = std::move(root);
  return report;
}

}  // namespace cuwarden
