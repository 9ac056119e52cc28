#include "reporters/labels/report_frames.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "reporters/labels/fingerprint.hpp"
#include "reporters/labels/group_label.hpp"
#include "reporters/labels/named_stacks.hpp"
#include "reporters/labels/report_suppressions.hpp"
#include "reporters/labels/users_frame.hpp"
#include "reporters/owners/known_libraries.hpp"
#include "runtime_hooks/core/kind.hpp"

namespace cuwarden {
namespace {

std::string_view view_of(const model::Text& text) { return text ? *text : std::string_view(); }

std::string_view further_libraries(const model::Report& report) {
  const auto found =
      std::ranges::find(report.settings, "CUWARDEN_LIBRARIES", &model::Setting::name);
  return found == report.settings.end() ? std::string_view() : view_of(found->value);
}

void set_libraries(model::Report& report) {
  KnownLibraries libraries(further_libraries(report));
  std::unordered_map<model::Id, std::string_view> paths = module_paths(report);
  for (model::Frame& frame : report.frames) {
    // The paths in a redacted report do not tell any more.
    if (report.redacted && frame.library) continue;
    frame.library = model::text_or_null(
        libraries.library_of(named_frame(frame, paths[frame.module.value_or(0)])));
  }
}

void set_locations(model::Report& report, const NamedStacks& stacks) {
  // Many groups may have one stack.
  std::unordered_map<model::Id, model::Text> by_stack;
  const auto location_in = [&](model::MaybeId stack) -> const model::Text& {
    const auto [known, is_new] = by_stack.try_emplace(stack.value_or(0));
    if (is_new) known->second = users_location(stacks.frames(stack));
    return known->second;
  };
  for (model::LeakGroup& group : report.leak_groups) group.where = location_in(group.stack);
  for (model::ImplicitGroup& group : report.implicit_groups) group.where = location_in(group.stack);
  for (model::FrameworkSite& site : report.framework_sites) site.where = location_in(site.stack);
  for (model::Forecast& row : report.forecasts) row.where = location_in(row.stack);
}

// Sets the fingerprints of the report's groups; of those without one alone if `only_missing` is
// true.
void set_fingerprints(model::Report& report, const NamedStacks& stacks, bool only_missing) {
  Fingerprints fingerprints;
  const auto set = [&](auto& row, std::string_view kind, std::string_view api) {
    if (!only_missing || !row.fingerprint)
      row.fingerprint = fingerprints.of(kind, api, stacks.frames(row.stack));
  };
  for (model::LeakGroup& group : report.leak_groups) set(group, group.kind, view_of(group.api));
  for (model::FrameworkSite& site : report.framework_sites)
    set(site, kind_name(Kind::framework_block), site.framework);
}

}  // namespace

NamedFrame named_frame(const model::Frame& frame, std::string_view module_path) {
  return {.module = frame.module.value_or(0),
          .path = module_path,
          .function = view_of(frame.function),
          .file = view_of(frame.file),
          .line = frame.line.value_or(0),
          .offset = frame.offset.value_or(0),
          .is_python = frame.language == "python",
          .library = view_of(frame.library)};
}

void label_report(model::Report& report) {
  set_libraries(report);
  const NamedStacks stacks(report);
  set_locations(report, stacks);
  for (model::LeakGroup& group : report.leak_groups) {
    GroupLabel label = label_group(group.api.value_or(""), stacks.frames(group.stack));
    if (!label.api.empty()) group.api = std::move(label.api);
    if (label.module != 0) group.module = label.module;
  }
  // The names in a redacted report are not those of the process.
  set_fingerprints(report, stacks, report.redacted);
  if (!report.redacted) apply_suppressions(report);
}

void label_old_report(model::Report& report) {
  const bool has_libraries = std::ranges::any_of(
      report.frames, [](const auto& frame) { return frame.library.has_value(); });
  if (!has_libraries) set_libraries(report);
  const NamedStacks stacks(report);
  if (!has_libraries) set_locations(report, stacks);
  set_fingerprints(report, stacks, true);
}

}  // namespace cuwarden
