#include "reporters/formats/formats.hpp"

#include <algorithm>

namespace cuwarden {

std::span<const Format> report_formats() {
  static constexpr Format all[] = {
#define FORMAT(name, meaning) {#name, meaning, formats::name},
#include "reporters/formats/formats.def"
  };
  return all;
}

const Format* report_format(std::string_view name) {
  const auto found = std::ranges::find(report_formats(), name, &Format::name);
  return found == report_formats().end() ? nullptr : &*found;
}

}  // namespace cuwarden
