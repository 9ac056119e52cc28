#include "reporters/merging/merged_json.hpp"

#include <algorithm>

#include "reporters/json/json_bounds.hpp"
#include "reporters/json/json_stream.hpp"
#include "reporters/json/parse.hpp"
#include "reporters/json/told_text.hpp"

namespace cuwarden {
namespace {

// Removes blanks, and then the word, from the beginning of the text. Returns false if another word
// is there.
bool skip(std::string_view& text, std::string_view word) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// Finds ids that name no row.
class Ids {
 public:
  explicit Ids(const model::MergedReport& report) : report_(report) {}

  // Returns the name of the first table with a wrong id; null if there is none.
  const char* wrong_table() const {
    const model::MergedReport& all = report_;
    if (!are_numbered(all.processes)) return "processes";
    if (!are_numbered(all.devices) ||
        !every(all.devices, [&](const auto& row) { return is_process(row.full_process); }))
      return "devices";
    if (!are_numbered(all.leaks) ||
        !every(all.leaks, [&](const auto& row) { return is_process(row.outlier); }))
      return "leaks";
    if (all.first_refusal && (!is_process(all.first_refusal->process) ||
                              !every(all.first_refusal->followed_by,
                                     [&](model::Id process) { return is_process(process); })))
      return "first_refusal";
    if (!every(all.refusals,
               [&](const auto& row) { return is_process(row.process) && is_device(row.device); }))
      return "refusals";
    if (!every(all.idle_devices, [&](const auto& row) { return is_device(row.shared_device); }))
      return "idle_devices";
    if (!every(all.device_uses,
               [&](const auto& row) { return is_process(row.process) && is_device(row.device); }))
      return "device_uses";
    if (!every(all.device_holders,
               [&](const auto& row) { return is_process(row.process) && is_device(row.device); }))
      return "device_holders";
    if (!every(all.leaks_of_processes, [&](const auto& row) {
          return is_process(row.process) && is_row(row.leak, all.leaks);
        }))
      return "leaks_of_processes";
    return nullptr;
  }

 private:
  template <class Rows>
  static bool are_numbered(const Rows& rows) {
    model::Id id = 0;
    return std::ranges::all_of(rows, [&](const auto& row) { return row.id == ++id; });
  }
  template <class Rows, class Test>
  static bool every(const Rows& rows, const Test& test) {
    return std::ranges::all_of(rows, test);
  }
  // True if the id is null, or that of a row.
  template <class Rows>
  static bool is_row(model::MaybeId id, const Rows& rows) {
    return !id || (*id != 0 && *id <= rows.size());
  }
  bool is_process(model::MaybeId id) const { return is_row(id, report_.processes); }
  bool is_device(model::MaybeId id) const { return is_row(id, report_.devices); }

  const model::MergedReport& report_;
};

}  // namespace

void write_merged_json(const model::MergedReport& report, Output& output) {
  JsonStream json(output);
  model::AnyValue::of(report).each_field(
      [&](const model::Field& field, model::AnyValue part) { json.part(field.name, part); });
  json.finish();
}

bool is_merged_report(std::string_view content) {
  constexpr std::string_view name = "\"schema\"";
  for (std::size_t at = content.find(name); at != content.npos; at = content.find(name, at + 1)) {
    std::string_view rest = content.substr(at + name.size());
    if (skip(rest, ":")) return skip(rest, "\"cuwarden.merged/");
  }
  return false;
}

std::optional<model::MergedReport> parse_merged_report(std::string_view content,
                                                       const std::string& path, std::string& error,
                                                       ReadBytes read) {
  constexpr const char* advice = "; merge the reports again, or use a copy";
  // The text is read twice.
  const auto first = [&](std::size_t bytes) { read(bytes / 2, content.size()); };
  const auto second = [&](std::size_t bytes) {
    read((content.size() + bytes) / 2, content.size());
  };
  if (const WrongOutline wrong = wrong_outline(content, largest_tree, first);
      !wrong.reason.empty()) {
    error = path + ": " + wrong.reason + advice;
    return std::nullopt;
  }
  const ToldText told(content, second);
  const Json root = Json::parse(told.begin(), told.end(), nullptr, false);
  const auto schema = root.find("schema");
  if (schema != root.end() && schema->is_string() && *schema != model::merged_schema) {
    error = path + ": its schema is " + schema->get<std::string>() +
            ", and this cuwarden reads cuwarden.merged/1; use the version that wrote it";
    return std::nullopt;
  }
  std::optional<model::MergedReport> report(std::in_place);
  if (const auto wrong = parse(root, *report)) {
    error = path + ": a damaged merged report (" + wrong->substr(wrong->find_first_not_of('.')) +
            ")" + advice;
    return std::nullopt;
  }
  if (const char* const table = Ids(*report).wrong_table()) {
    error = path + ": a damaged merged report (an id in " + table + " names no row)" + advice;
    return std::nullopt;
  }
  return report;
}

}  // namespace cuwarden
