// Keeps binary files off terminals.
#pragma once

#include "reporters/exports/exports.hpp"

namespace cuwarden {

// Returns false after an error line if the file is binary, and standard output, to which it would
// go, is a terminal. `format`: the file's format, which the line names.
bool may_be_printed(const CommonFile&, const ExportFormat& format);

}  // namespace cuwarden
