// Writes the file of a report, with mode 0600. The report is written to a temporary file in the
// same folder, which is then renamed. Files of other writers and symbolic links are never replaced.
// If the name is taken, a number is put before its ending ("ci.1.json"). Symbolic links in the
// folder's path are followed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "reporters/tables/report_options.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// The file of one report. write() may be called several times; each call replaces the file that the
// last one wrote. If another file has taken its path meanwhile, write() makes a file of another
// name. No descriptor is kept between two calls.
class ReportFile {
 public:
  // `path`: wanted path of the file. Missing folders are made when the report is written. `advice`:
  // end of the error line after a failure: what a user can do. It is not copied; the caller keeps
  // it alive.
  explicit ReportFile(std::string path,
                      const char* advice = "set CUWARDEN_REPORT to a path that can be written")
      : wanted_(std::move(path)), advice_(advice) {}

  // Makes the next write() replace the file at `path`. It must be an earlier report about the
  // process whose report this object writes. Does nothing if there is no file.
  void adopt(const std::string& path);

  // Makes the report of a ledger and writes it to the file. Returns true if the whole report is at
  // path(). Otherwise error() is one line about the failure. Then no partial file is left, and the
  // file that an earlier call wrote stays as it was.
  bool write(const ledger::Reader&, const ReportOptions&) noexcept;

  // Removes the file that this object wrote or adopted, unless another file has taken its path.
  // Afterwards path() is empty, and the next write() makes a new file at wanted().
  void remove() noexcept;

  // Returns the path that the constructor was given.
  const std::string& wanted() const noexcept { return wanted_; }
  // Returns the path of the file that was written or adopted; empty if there is none.
  const std::string& path() const noexcept { return path_; }
  // Returns the number before the ending in the name of the file, such as 1 in "ci.1.json", if
  // write() has made the file. 0: none. The number of an adopted file is not known, and does not
  // count.
  unsigned number() const noexcept { return number_; }
  // Returns the number of leaked allocations in the report that write() made last; 0 before the
  // first call.
  std::uint64_t leaks() const noexcept { return leaks_; }
  // Returns one line about the failure of the last write(); empty if it succeeded.
  const std::string& error() const noexcept { return error_; }
  // True if the ledger from which write() made its last report is damaged; false before the first
  // call.
  bool ledger_is_damaged() const noexcept { return ledger_is_damaged_; }

  // Removes the temporary files that the process of a ledger left in its report's folder, because
  // it died while it wrote its report. Failures are ignored.
  static void remove_unfinished(const ledger::ProcessView&) noexcept;

 private:
  // Does the work of write(). Sets error_ after a failure. Throws if memory runs out.
  void write_or_throw(const ledger::Reader&, const ReportOptions&);
  // Sets error_ to a line such as "cannot write the report …". `error`: an errno. `what`: the words
  // between "cannot" and "the report", such as "write". Always returns false.
  bool fail(int error, const char* what);

  std::string wanted_;  // path that the constructor was given
  const char* advice_;  // advice to the user, the end of the line in error_; not owned
  // path_: path of the file that was written or adopted; empty: none. error_: line about the
  // failure of the last write(); empty: it succeeded.
  std::string path_, error_;
  // Number before the ending in the name of the file that write() made, such as 1 in "ci.1.json".
  // 0: no number, or write() made no file.
  unsigned number_ = 0;
  // Number of leaked allocations in the report that write() made last; 0 before the first call.
  std::uint64_t leaks_ = 0;
  // True if the ledger from which write() made its last report is damaged.
  bool ledger_is_damaged_ = false;
  // Device number of the file at path_; meaningless if path_ is empty.
  dev_t device_ = 0;
  ino_t inode_ = 0;  // inode number of the file at path_; meaningless if path_ is empty
};

}  // namespace cuwarden
