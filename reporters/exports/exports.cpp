#include "reporters/exports/exports.hpp"

#include <algorithm>

namespace cuwarden {
namespace {

constexpr ExportFormat all[] = {
#define EXPORT(name, meaning) {#name, meaning, exports::name},
#include "reporters/exports/exports.def"
};

}  // namespace

std::span<const ExportFormat> export_formats() { return all; }

const ExportFormat* export_format(std::string_view name) {
  const auto* const found = std::ranges::find(all, name, &ExportFormat::name);
  return found == std::end(all) ? nullptr : found;
}

}  // namespace cuwarden
