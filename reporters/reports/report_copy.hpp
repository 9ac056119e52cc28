// A report as it lies in its file, to be changed and written again: with its properties in their
// order, also those that a later version has added.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "reporters/json/parse.hpp"
#include "reporters/model/report.hpp"

namespace cuwarden {

class ReportCopy {
 public:
  // Null with `error` set to one line when the file is no report.
  static std::optional<ReportCopy> load(const std::string& path, std::string& error);

  model::Report& report() { return report_; }
  // Returns the report as a text of JSON, as do the files that replace() and write() make.
  // Properties that the model does not know stay in it, unless the report is redacted.
  std::string text();

  // Both write with mode 0600, whole or not at all, and through no symbolic link. They return an
  // empty text, or one line: what, where, what to do.
  //
  // Replaces the file that was loaded, unless it is another one by now or is not this user's.
  std::string replace();
  // Writes a file that was not there. `path`: wanted; where it is taken a number is put before the
  // ending, and the path that was chosen is left there.
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
