// The file of a report. It is written beside its final name and renamed, with mode 0600, never
// through a symbolic link and never over a file that another wrote: a number is put before the
// ending instead (report_name.hpp). The object may write again, and then replaces its own file.
// Nothing is thrown; no descriptor is kept between two writes.
#pragma once

#include <sys/types.h>

#include <string>

#include "reporters/json/write_report.hpp"

namespace cuwarden {

class ReportFile {
 public:
  // `path`: absolute; missing folders are made when the report is written. `advice`: the end of an
  // error line, which says what a user can do.
  explicit ReportFile(std::string path,
                      const char* advice = "set CUWARDEN_REPORT to a path that can be written")
      : wanted_(std::move(path)), advice_(advice) {}

  // The file at `path` is an earlier report of this process: it is the one to replace.
  void adopt(const std::string& path);

  // True when the whole report lies at path(). Otherwise error() is one line: what, where, what
  // to do; nothing is left behind, and an earlier report of this object stays as it was.
  bool write(const ledger::Reader&, const ReportOptions&) noexcept;

  // Removes the report that this object wrote, unless another file has its name by now. A later
  // write() begins anew.
  void remove() noexcept;

  const std::string& wanted() const noexcept { return wanted_; }
  const std::string& path() const noexcept { return path_; }  // empty before the first success
  unsigned number() const noexcept { return number_; }        // before the ending; 0: none
  const std::string& error() const noexcept { return error_; }
  // True if the ledger that was read for the last report is damaged.
  bool ledger_is_damaged() const noexcept { return ledger_is_damaged_; }

  // Takes away what a process leaves in its report's folder when it dies while writing.
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
