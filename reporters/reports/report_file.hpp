// The file of a report. It is written beside its final name and renamed, with mode 0600, never
// through a symbolic link and never over a file that another wrote: a number is put before the
// ending instead (report_name.hpp). The object may write again, and then replaces its own file.
// Nothing is thrown; no descriptor is kept between two writes.
#pragma once

#include <sys/types.h>

#include <string>

#include "reporters/json/write_report.hpp"

namespace cuwarden {

// A report that a process writes: its path, and the file that earlier calls have written.
class ReportFile {
 public:
  // `path`: absolute; missing folders are made when the report is written. `advice`: the end of an
  // error line, which says what a user can do.
  explicit ReportFile(std::string path,
                      const char* advice = "set CUWARDEN_REPORT to a path that can be written")
      : wanted_(std::move(path)), advice_(advice) {}

  // Makes write() replace the file at `path`, which is an earlier report of this process.
  void adopt(const std::string& path);

  // Writes the report of the ledger. Returns true if the whole report is at path(). Otherwise
  // error() is one line about the failure; no partial file is left, and an earlier report of this
  // object stays as it was.
  bool write(const ledger::Reader&, const ReportOptions&) noexcept;

  // Removes the report that this object wrote, unless another file has its path by now. A later
  // write() chooses a path anew.
  void remove() noexcept;

  // Returns the path that the constructor was given.
  const std::string& wanted() const noexcept { return wanted_; }
  // path of the file that was written; empty before the first success
  const std::string& path() const noexcept { return path_; }
  // number before the ending of path(); 0: none
  unsigned number() const noexcept { return number_; }
  const std::string& error() const noexcept { return error_; }
  // True if the ledger that was read for the last report is damaged.
  bool ledger_is_damaged() const noexcept { return ledger_is_damaged_; }

  // Removes the unfinished report that the process has left in its report's folder if it died while
  // writing.
  static void remove_unfinished(const ledger::ProcessView&) noexcept;

 private:
  void write_or_throw(const ledger::Reader&, const ReportOptions&);
  bool fail(int error, const char* what);

  std::string wanted_;
  const char* advice_;
  std::string path_, error_;
  unsigned number_ = 0;
  bool ledger_is_damaged_ = false;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace cuwarden
