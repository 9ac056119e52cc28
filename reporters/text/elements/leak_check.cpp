#include "reporters/text/elements/leak_check.hpp"

#include <algorithm>
#include <utility>

#include "reporters/text/elements/text_elements.hpp"
#include "reporters/text/elements/text_stacks.hpp"
#include "reporters/words/near_names.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"
#include "runtime_hooks/core/caching_allocators.hpp"

namespace cuwarden {

LeakCheck check_leaks(const IndexedReport& report, const std::string& module) {
  LeakCheck check;
  check.doubt = lacks_records(report);
  if (module.empty()) {
    const auto& leaks = report->leaks;
    check.count = leaks.count.value_or(0);
    check.bytes = leaks.bytes.value_or(0);
    return check;
  }
  std::uint64_t unknown = 0;
  for (const auto& group : report->leak_groups) {
    if (group.released_by || group.suppressed) continue;
    if (!group.module) unknown += group.count.value_or(0);
    if (!is_in_module(report, group, module)) continue;
    check.count += group.count.value_or(0);
    check.bytes += group.bytes.value_or(0);
  }
  if (!check.doubt && unknown > 0)
    check.doubt = "the module of " + allocations(unknown) + " that leaked is not known";
  return check;
}

std::optional<std::string> unlisted_leaks(const IndexedReport& report, const std::string& module,
                                          const LeakCheck& check) {
  std::uint64_t listed = 0;
  for (const model::LeakGroup& group : report->leak_groups)
    if (!group.released_by && !group.suppressed &&
        (module.empty() || is_in_module(report, group, module)))
      listed += group.count.value_or(0);
  if (listed >= check.count) return std::nullopt;
  return "its table leak_groups has " + human_count(listed) + " of " + allocations(check.count);
}

bool is_in_module(const IndexedReport& report, const model::LeakGroup& group,
                  const std::string& text) {
  for (const model::MaybeId id : {group.module, calling_module(report, group.stack)}) {
    const model::Module* const module = report.module(id);
    if (module != nullptr && printable(module->path).find(text) != std::string::npos) return true;
  }
  return false;
}

bool holds_listed_blocks(const IndexedReport& report, const model::LeakGroup& group) {
  const model::Module* const module = report.module(group.module);
  return module != nullptr && is_pytorch_allocator(module->path) &&
         std::ranges::any_of(report->framework_sites, [&](const auto& site) {
           return site.framework == "PyTorch" && site.device == group.device &&
                  site.count.value_or(0) != 0;
         });
}

std::optional<std::string> lacks_records(const IndexedReport& report) {
  // Reports of before there was `records` say it of the tool as a whole.
  const model::Tool& tool = report->tool;
  for (const model::Completeness& part :
       {report->records.value_or(model::Completeness{tool.complete, tool.reasons}),
        report->coverage}) {
    if (part.complete) continue;
    return part.reasons.empty() ? "it does not say why" : printable(part.reasons.front());
  }
  return std::nullopt;
}

void KnownModules::add(const IndexedReport& report) {
  for (const auto& module : report->modules) {
    if (std::string path = printable(module.path); !path.empty()) paths_.insert(std::move(path));
  }
}

bool KnownModules::have(const std::string& text) const {
  return std::ranges::any_of(paths_,
                             [&](const std::string& path) { return path.find(text) != path.npos; });
}

std::vector<std::string> KnownModules::nearest(const std::string& text) const {
  std::set<std::pair<std::size_t, std::string>> names;
  for (const std::string& path : paths_) {
    std::string name(file_name(path));
    const std::size_t edits = edits_to_part(std::string(file_name(text)), name);
    names.emplace(edits, std::move(name));
  }
  std::vector<std::string> nearest;
  for (const auto& [edits, name] : names)
    if (nearest.size() < 3) nearest.push_back(name);
  return nearest;
}

std::string line_about_unknown_module(const std::string& module, const KnownModules& modules) {
  const std::vector<std::string> nearest = modules.nearest(module);
  std::string line = "--module " + module +
                     ": no recorded allocation was made through a module with this in its path";
  for (std::size_t i = 0; i < nearest.size(); ++i)
    line += (i == 0 ? "; the nearest are " : i + 1 == nearest.size() ? " and " : ", ") + nearest[i];
  return line;
}

}  // namespace cuwarden
