// Keeps binary files off terminals.
#pragma once

#include "reporters/exports/exports.hpp"

namespace cuwarden {

// True if the file may be written to standard output. If the file is binary and standard output is
// a terminal, prints an error line and returns false. `CommonFile`: the file to write. `format`:
// the file's format, which the error line names.
bool may_be_printed(const CommonFile&, const ExportFormat& format);

}  // namespace cuwarden
