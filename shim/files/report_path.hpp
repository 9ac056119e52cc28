// The report's path: CUWARDEN_REPORT with its % fields filled in, absolute, fixed at the first CUDA
// call, so that a later chdir moves nothing.
#pragma once

#include <string>
#include <string_view>

namespace cuwarden::shim {

// Returns the absolute path of the report: `pattern` (CUWARDEN_REPORT) with its % fields filled in.
// `ledger_folder`: CUWARDEN_LEDGER_DIR, or empty. If the working directory has no path, the report
// goes to `ledger_folder`, $TMPDIR or /tmp, and a line says so. `pid`: the value of %p.
std::string expand_report_path(std::string_view pattern, std::string_view ledger_folder, int pid);

// Returns the absolute path for `path`, which may be relative to the present working directory.
std::string absolute_path(std::string path);

}  // namespace cuwarden::shim
