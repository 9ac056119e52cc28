#include "reporters/exports/exports.hpp"

#include <algorithm>

#include "reporters/words/quantities.hpp"

namespace cuwarden {
namespace {

constexpr ExportFormat all[] = {
#define EXPORT(name, type, meaning) {#name, meaning, exports::name},
#include "reporters/exports/exports.def"
};

}  // namespace

std::string words_about_known(const ExportedLeaks& given, const std::string& fingerprint,
                              const FingerprintedLeak& leak) {
  const auto known = given.known.find(fingerprint);
  if (known == given.known.end()) return "";
  if (leak.bytes <= known->second.bytes && leak.count <= known->second.count) return "known";
  return "known, but grown from " + human_bytes(known->second.bytes) + " in " +
         counted(known->second.count, leak.kind);
}

std::span<const ExportFormat> export_formats() { return all; }

const ExportFormat* export_format(std::string_view name) {
  const auto* const found = std::ranges::find(all, name, &ExportFormat::name);
  return found == std::end(all) ? nullptr : found;
}

}  // namespace cuwarden
