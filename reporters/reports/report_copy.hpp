// A report as it lies in its file, to be changed and written again: with its properties in their
// order, also those that a later version has added.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "reporters/json/parse.hpp"
#include "reporters/model/report.hpp"

namespace cuwarden {

// A report that was read from a file, is changed, and is written again.
class ReportCopy {
 public:
  // Reads a report. Returns null, with `error` set to one line, if the file is no report.
  static std::optional<ReportCopy> load(const std::string& path, std::string& error);

  // Returns the report, which the caller may change before replace() or write().
  model::Report& report() { return report_; }
  // Returns the report as JSON, the content that replace() and write() give to files. Properties
  // that the model does not know are kept, unless the report is redacted.
  std::string text();

  // replace() and write() make a file of mode 0600, whole or not at all, and follow no symbolic
  // link. They return an empty text, or one line about the failure.
  //
  // Replaces the file that was loaded. Fails if its path leads to another file by now, or if it is
  // not this user's.
  std::string replace();
  // Writes a new file at `path`. If a file is there already, a number is put before the ending;
  // `path` is set to the path that was written.
  std::string write(std::string& path);

 private:
  void bring_up_to_date();

  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  uid_t owner_ = 0;
  model::Report report_;
  Json root_;  // as in the file
};

}  // namespace cuwarden
