#include "reporters/report_document.hpp"

#include <algorithm>

#include "reporters/given_file.hpp"
#include "reporters/json_bounds.hpp"
#include "reporters/name_completion.hpp"
#include "reporters/report_shape.hpp"

namespace cuwarden {
namespace {

using nlohmann::json;

constexpr const char* advice = "; give the path of a report that cuwarden wrote";

}  // namespace

std::optional<ReportDocument> ReportDocument::load(const std::string& path, std::string& error,
                                                   std::size_t most_bytes) {
  const std::string name = path == "-" ? "standard input" : path.empty() ? "''" : path;
  std::string content;
  const std::string wrong = read_object_file(path, std::min(most_bytes, largest_report), content);
  if (wrong.empty()) return parse(content, name, error);
  error = name + ": " + wrong + advice;
  return std::nullopt;
}

std::optional<ReportDocument> ReportDocument::parse(std::string_view content,
                                                    const std::string& path, std::string& error) {
  if (const std::string wrong = wrong_outline(content); !wrong.empty()) {
    error = path + ": " + wrong + advice;
    return std::nullopt;
  }
  ReportDocument document;
  document.root_ = json::parse(content, nullptr, false);
  const json* schema = nullptr;
  if (document.root_.is_object() && document.root_.contains("schema")) {
    schema = &document.root_["schema"];
  }
  if (schema == nullptr || !schema->is_string() ||
      !schema->get_ref<const std::string&>().starts_with("cuwarden.report/")) {
    error = path + ": not a cuwarden report (it has no \"schema\": \"cuwarden.report/1\")";
    return std::nullopt;
  }
  if (*schema != "cuwarden.report/1") {
    error = path + ": its schema is " + schema->get<std::string>() +
            ", and this cuwarden reads cuwarden.report/1; use the version that wrote it";
    return std::nullopt;
  }
  if (const auto wrong = wrong_shape(document.root_)) {
    error = path + ": a damaged report (" + *wrong + "); have it written again, or use a copy";
    return std::nullopt;
  }
  document.stacks_ = document.index_of("stacks");
  document.frames_ = document.index_of("frames");
  document.modules_ = document.index_of("modules");
  return document;
}

bool ReportDocument::complete_names(Naming& naming) {
  if (!cuwarden::complete_names(root_, naming)) return false;
  frames_ = index_of("frames");
  return true;
}

const json& ReportDocument::table(const char* name) const {
  const auto found = root_.find(name);
  return found == root_.end() ? none_ : *found;
}

ReportDocument::Index ReportDocument::index_of(const char* name) const {
  Index index;
  const json& rows = table(name);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    // Not by get(), which converts 1e300 into anything; this throws.
    index[rows.at(row).at("id").get_ref<const std::int64_t&>()] = row;
  }
  return index;
}

const json* ReportDocument::find(const char* name, const Index& index, const json& id) const {
  if (!id.is_number_integer()) return nullptr;
  const auto row = index.find(id.get<std::int64_t>());
  return row == index.end() ? nullptr : &table(name)[row->second];
}

const json* ReportDocument::stack(const json& id) const { return find("stacks", stacks_, id); }
const json* ReportDocument::frame(const json& id) const { return find("frames", frames_, id); }
const json* ReportDocument::module(const json& id) const { return find("modules", modules_, id); }

std::string ReportDocument::module_name(const json& id) const {
  const json* row = module(id);
  if (row == nullptr || !row->at("path").is_string()) return {};
  const std::string path = row->at("path");
  return path.substr(path.rfind('/') + 1);
}

}  // namespace cuwarden
