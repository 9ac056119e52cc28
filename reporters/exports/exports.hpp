// The formats in which `cuwarden export` writes reports for other programs.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "reporters/comparison/leaks_by_fingerprint.hpp"
#include "reporters/files/output.hpp"
#include "reporters/model/indexed_report.hpp"
#include "reporters/model/row_progress.hpp"

namespace cuwarden {

// Leaks that a format is to write.
struct ExportedLeaks {
  LeaksByFingerprint leaks;
  // Leaks of the user's baseline (file of known leaks); a leak in it is no failure. Empty: there is
  // no baseline.
  LeaksByFingerprint known;
  // Absolute path of the folder of the repository with the sources. Annotations name files in it by
  // their paths from there. Empty: they name all files by the paths in `leaks`.
  std::string repository{};
};

// Returns words about a leak that is known from the user's baseline: "known", or "known, but grown
// from 6.0 MiB in 3 allocations". Empty if the baseline does not have its fingerprint.
std::string words_about_known(const ExportedLeaks&, const std::string& fingerprint,
                              const FingerprintedLeak&);

// Type of the function of a format that only needs the sums of leaks over all reports. The function
// returns the leaks as text in that format.
using WriteLeaks = std::string(const ExportedLeaks&);
// Type of the function of a format that is written report by report, so that any number of reports
// takes the memory of one. The function writes one report to the output. `path`: path of the file
// from which the report was read. `told`: is called now and then with the progress: the number of
// the report's rows that are written, and of all. The caller calls Output::finish() after the last
// report.
using WriteReport = void(const IndexedReport&, const std::string& path, Output&, Told told);

// A file that is made from all reports together, because they share a part of it, such as a table
// of names.
class CommonFile {
 public:
  CommonFile() = default;
  CommonFile(const CommonFile&) = delete;
  CommonFile& operator=(const CommonFile&) = delete;
  virtual ~CommonFile() = default;
  // True if the file is not text, so that a terminal cannot show it.
  virtual bool is_binary() const { return false; }
  // Adds a report to the file. Copies what the file needs, and keeps no reference to the report.
  // `path`: path of the file from which the report was read. `told`: is called now and then with
  // the progress (rows that are done, and all), by formats that may need more than a second.
  virtual void add(const IndexedReport&, const std::string& path, Told told) = 0;
  // Adds a report to the file, without a callback about progress. `path`: path of the file from
  // which the report was read.
  void add(const IndexedReport& report, const std::string& path) {
    add(report, path, [](std::size_t, std::size_t) {});
  }
  // Writes the file with all reports that were added. The caller calls Output::finish() afterwards.
  // `told`: is called now and then with the progress, by formats that may need more than a second:
  // number of bytes of the file's content that were compressed so far, and number of all of them.
  virtual void write(Output&, Told told) = 0;
  // Writes the file with all reports that were added, without a callback about progress.
  void write(Output& output) {
    write(output, [](std::size_t, std::size_t) {});
  }
};
// Type of the function of a format that is made from all reports together. The function returns a
// file without reports. Only exports::html() may return null: if cuwarden was built without the
// page.
using StartFile = std::unique_ptr<CommonFile>();

// Declares the function of each format in exports.def, under the format's name.
namespace exports {
#define EXPORT(name, type, meaning) type name;
#include "reporters/exports/exports.def"
}  // namespace exports

// A format in which `cuwarden export` writes reports.
struct ExportFormat {
  // name: value for the option --format. meaning: text for the help that says what the format is
  // for.
  std::string_view name, meaning;
  std::variant<WriteLeaks*, WriteReport*, StartFile*> write;  // function of the format; never null
};

// Returns all formats, in the order of exports.def. The formats are never destroyed.
std::span<const ExportFormat> export_formats();

// Returns the format of this name; null if there is none. The format is never destroyed.
const ExportFormat* export_format(std::string_view name);

}  // namespace cuwarden
