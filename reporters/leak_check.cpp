#include "reporters/leak_check.hpp"

#include <algorithm>
#include <utility>

#include "reporters/near_names.hpp"
#include "reporters/printable.hpp"
#include "reporters/quantities.hpp"
#include "reporters/text_elements.hpp"

namespace cuwarden {

using nlohmann::json;

LeakCheck check_leaks(const ReportDocument& report, const std::string& module) {
  LeakCheck check;
  check.doubt = lacks_records(report);
  if (module.empty()) {
    const json& leaks = report.root().at("leaks");
    check.count = number_of(leaks, "count");
    check.bytes = number_of(leaks, "bytes");
    return check;
  }
  std::uint64_t unknown = 0;
  for (const json& group : report.table("leak_groups")) {
    if (!group.at("released_by").is_null() || group.at("suppressed") != false) continue;
    if (group.at("module").is_null()) unknown += number_of(group, "count");
    if (!is_in_module(report, group, module)) continue;
    check.count += number_of(group, "count");
    check.bytes += number_of(group, "bytes");
  }
  if (!check.doubt && unknown > 0)
    check.doubt = "the module of " + allocations(unknown) + " that leaked is not known";
  return check;
}

bool is_in_module(const ReportDocument& report, const json& row, const std::string& text) {
  const json* module = report.module(row.at("module"));
  return module != nullptr && text_of(*module, "path", "").find(text) != std::string::npos;
}

std::optional<std::string> lacks_records(const ReportDocument& report) {
  // Reports of before there was `records` say it of the tool as a whole.
  const char* const lost = report.root().contains("records") ? "records" : "tool";
  for (const char* part : {lost, "coverage"}) {
    const json& found = report.root().at(part);
    if (found.at("complete") == true) continue;
    const json& reasons = found.at("reasons");
    return reasons.empty() ? "it does not say why"
                           : printable(reasons.at(0).get_ref<const std::string&>());
  }
  return std::nullopt;
}

void KnownModules::add(const ReportDocument& report) {
  for (const json& module : report.table("modules")) {
    if (std::string path = text_of(module, "path", ""); !path.empty())
      paths_.insert(std::move(path));
  }
}

bool KnownModules::have(const std::string& text) const {
  return std::ranges::any_of(paths_,
                             [&](const std::string& path) { return path.find(text) != path.npos; });
}

std::vector<std::string> KnownModules::nearest(const std::string& text) const {
  std::set<std::pair<std::size_t, std::string>> names;
  for (const std::string& path : paths_) {
    std::string name = file_name(path);
    const std::size_t edits = edits_to_part(file_name(text), name);
    names.emplace(edits, std::move(name));
  }
  std::vector<std::string> nearest;
  for (const auto& [edits, name] : names)
    if (nearest.size() < 3) nearest.push_back(name);
  return nearest;
}

}  // namespace cuwarden
