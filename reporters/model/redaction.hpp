// Takes out of a report the parts that say whose it is, so that it can be given to a vendor: host,
// user, command line, folders and environment. Names of files and functions stay.
#pragma once

#include <string>

#include "reporters/model/report.hpp"
#include "reporters/model/row_progress.hpp"

namespace cuwarden {

// Removes from a report the host, command line, folders of paths, environment variables, job id,
// CUDA_VISIBLE_DEVICES and device UUIDs. Of other processes, only pids, bytes and states stay. The
// path of the memory cgroup becomes "/". In file names and sentences, the host's name becomes
// "host", and names of users become "user". Users are known by paths below home folders. Sets the
// report's field `redacted` to true. Returns what redacted_text() returns for `text` before the
// report is changed. `told`: is called now and then with the number of the report's rows that are
// done, and that of all.
std::string redact(
    model::Report& report, std::string text = {}, Told told = [](std::size_t, std::size_t) {});

// Returns `text` without folders of paths: a path becomes its file name. The path of a file that is
// not in the report becomes "(path)" if its name has no dot. Names of users and of the host that
// occur in the report are replaced by "user" and "host". redact() must not have been called for the
// report yet, because it removes these names.
std::string redacted_text(const model::Report& report, std::string text);

}  // namespace cuwarden
