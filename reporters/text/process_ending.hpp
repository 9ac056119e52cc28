// The end of a process in words.
#pragma once

#include <string>

#include "reporters/model/indexed_report.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden {

// Returns a text about the end of a process, such as "exited with status 0" or "killed by signal 9
// (SIGKILL)". The parameters are those fields of model::Process.
std::string process_ending(const model::Text& end_reason, const model::SignedFigure& exit_status,
                           const model::Figure& signal);

// Returns a sentence if the kernel's OOM killer may have ended the process: it died unseen or by
// SIGKILL, and its cgroup counts kills. Returns an empty text otherwise.
std::string words_about_oom_killer(const IndexedReport&);

}  // namespace cuwarden
