// The report's path: CUWARDEN_REPORT with its % fields filled in, absolute, fixed at the first CUDA
// call, so that a later chdir moves nothing.
#pragma once

#include <string>
#include <string_view>

namespace cuwarden::shim {

// `ledger_folder`: CUWARDEN_LEDGER_DIR or empty; where the working directory has no path, the
// report goes there, or else to $TMPDIR or /tmp, and a line says so. `pid`: for %p.
std::string expand_report_path(std::string_view pattern, std::string_view ledger_folder, int pid);

// `path` as seen from the working directory of now.
std::string absolute_path(std::string path);

}  // namespace cuwarden::shim
