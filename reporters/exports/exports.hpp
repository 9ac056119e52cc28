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
#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden {

// Leaks to be written.
struct ExportedLeaks {
  LeaksByFingerprint leaks;
  LeaksByFingerprint known;  // leaks of the baseline, which are no failures; empty: none
};

// Returns "known" for a leak of the baseline, or "known, but grown from 6.0 MiB in 3 allocations";
// empty if the baseline does not have the fingerprint.
std::string words_about_known(const ExportedLeaks&, const std::string& fingerprint,
                              const FingerprintedLeak&);

// Function of a format that has the sums of leaks. Returns the leaks as text in that format.
using WriteLeaks = std::string(const ExportedLeaks&);
// Function of a format that is written report by report, so that any number of reports takes the
// memory of one. Writes the report to the output. `path`: path of the report's file. `told`: is
// called now and then with the number of rows that were written and that of all. The caller calls
// Output::finish() after the last report.
using WriteReport = void(const IndexedReport&, const std::string& path, Output&,
                         FunctionRef<void(std::size_t rows, std::size_t all)> told);

// A file that is written from all reports together, because a part of it, such as a table of names,
// is common to them.
class CommonFile {
 public:
  CommonFile() = default;
  CommonFile(const CommonFile&) = delete;
  CommonFile& operator=(const CommonFile&) = delete;
  virtual ~CommonFile() = default;
  // True if the file is no text, so that a terminal cannot show it.
  virtual bool is_binary() const { return false; }
  // Takes from a report what the file needs; keeps no reference to it. `path`: path of the report's
  // file.
  virtual void add(const IndexedReport&, const std::string& path) = 0;
  // Writes the file about all reports that were added. The caller calls Output::finish() after it.
  virtual void write(Output&) = 0;
};
// Function of a format that is written from all reports together. Returns the file, to which no
// report was added yet; never null.
using StartFile = std::unique_ptr<CommonFile>();

// Declares a function for each format, with the format's name.
namespace exports {
#define EXPORT(name, type, meaning) type name;
#include "reporters/exports/exports.def"
}  // namespace exports

// A format in which `cuwarden export` writes reports.
struct ExportFormat {
  // Name for the option --format; meaning of the format, as text for the help.
  std::string_view name, meaning;
  std::variant<WriteLeaks*, WriteReport*, StartFile*> write;  // the format's function; never null
};

// Returns all formats, in the order of exports.def. The span is valid for ever.
std::span<const ExportFormat> export_formats();

// Returns the format of this name, which is never destroyed; null if there is none.
const ExportFormat* export_format(std::string_view name);

}  // namespace cuwarden
