// The path of the report file. The shim fixes it at the process's first CUDA call, as an absolute
// path: a later chdir of the program does not change it.
#pragma once

#include <string>
#include <string_view>

namespace cuwarden::shim {

// Returns the absolute path of the report. `pattern`: the value of CUWARDEN_REPORT, whose % fields
// are filled in, such as %p with `pid`. If the pattern is a folder, the report has the default name
// in it (cuwarden-%e-%h-%p.json). For /dev/null (no report), returns /dev/null. For another device,
// a pipe or a socket, warns and returns the default name in the working directory. Names that are
// too long for the file system are shortened. If the path is longer than the system takes, or the
// working directory was removed, the report goes to another folder: `ledger_folder` (the value of
// CUWARDEN_LEDGER_DIR, or empty), $TMPDIR or /tmp. A warning says so.
std::string expand_report_path(std::string_view pattern, std::string_view ledger_folder, int pid);

}  // namespace cuwarden::shim
