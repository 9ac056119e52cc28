// Whether a report that somebody hands in has the tables and fields that are read from it, with
// values of the types that report.schema.json gives them.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace cuwarden {

// The first thing that is not as it should be, in words: "leak_groups[3].bytes is no number".
std::optional<std::string> wrong_shape(const nlohmann::json& report);

}  // namespace cuwarden
