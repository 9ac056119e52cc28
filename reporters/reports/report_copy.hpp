// A report that is read from a file, changed, and written to a file again. Its JSON properties keep
// their order. Properties that a later version of cuwarden has added are kept.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "reporters/json/parse.hpp"
#include "reporters/json/read_report.hpp"
#include "reporters/model/report.hpp"
#include "reporters/model/row_progress.hpp"

namespace cuwarden {

// A report that was read from a file, to be changed and written again.
class ReportCopy {
 public:
  // Reads the report file at `path`; "-" is standard input. Returns null, with `error` set to one
  // line about the reason, if the file cannot be read or is no report. `read`: is called now and
  // then with the number of bytes that were parsed so far, and that of all.
  static std::optional<ReportCopy> load(
      const std::string& path, std::string& error,
      ReadBytes read = [](std::size_t, std::size_t) {});

  // Returns the report, which the caller may change before text(), replace() or write(). The
  // reference is valid as long as this object.
  model::Report& report() { return report_; }
  // Returns the changed report as JSON text. replace() and write() write the same text to files.
  // Properties of the loaded file that model::Report lacks are kept, unless the report is redacted.
  // `told`: is called now and then with the progress: number of the report's rows that were written
  // so far, and that of all.
  std::string text(Told told = [](std::size_t, std::size_t) {});

  // Writes the changed report in place of the loaded file, whole or not at all. The new file has
  // mode 0600. Fails if standard input was loaded, or if another file has taken the path since
  // load(). Fails also if the file is a symbolic link, or is not this user's. Returns an empty
  // text, or one line about the failure.
  std::string replace();
  // Writes the changed report to a new file of mode 0600 at `path`, whole or not at all. If the
  // path is taken, a number is put before the ending ("ci.1.json"), and `path` is set to the path
  // of the new file. Returns an empty text, or one line about the failure. After a failure, `path`
  // may be the last path that was tried. `told`: is called now and then with the progress, as by
  // text().
  std::string write(
      std::string& path, Told told = [](std::size_t, std::size_t) {});

 private:
  // Puts the values of report_ into the JSON root_. `done`: is called for each row of the report.
  void bring_up_to_date(RowDone done);

  std::string path_;  // path of the file that was loaded; "-": standard input
  // Device number of the file that was loaded; 0: no regular file.
  dev_t device_ = 0;
  ino_t inode_ = 0;       // inode number of the file that was loaded; 0: no regular file
  uid_t owner_ = 0;       // owner of the file that was loaded; 0 also if it was no regular file
  model::Report report_;  // the report, with the caller's changes
  Json root_;             // JSON of the file, with the properties that model::Report lacks
};

}  // namespace cuwarden
