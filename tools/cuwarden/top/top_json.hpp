// Writes the output of `cuwarden top --json`: one JSON object, which top.schema.json describes.
#pragma once

#include "reporters/files/output.hpp"
#include "tools/cuwarden/top/top_rows.hpp"

namespace cuwarden {

// Writes the rows as the JSON object of `cuwarden top --json`. `with_stacks`: if false, the object
// has no member "stacks". The caller calls Output::finish() afterwards.
void write_top_json(const TopAnswer&, bool with_stacks, Output&);

}  // namespace cuwarden
