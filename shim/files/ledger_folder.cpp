#include "shim/files/ledger_folder.hpp"

#include <cerrno>
#include <cstdlib>

#include "reporters/tables/process_facts.hpp"
#include "reporters/words/error_text.hpp"
#include "reporters/words/setting_values.hpp"
#include "runtime_hooks/core/files/absolute_path.hpp"
#include "runtime_hooks/core/files/open_file.hpp"
#include "runtime_hooks/driver/hook_list.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "shim/files/old_ledgers.hpp"
#include "shim/files/report_pattern.hpp"
#include "shim/support/log.hpp"

namespace cuwarden::shim {
namespace {

// Returns the folder of a path; "/" for "/x".
std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Returns the reason why a folder that the user chose has no ledger.
std::string why_none_in(const std::string& folder) {
  if (open_folder(AT_FDCWD, folder.c_str()))
    return "it cannot be written, it is on a network file system, or file sizes are limited";
  if (errno == EMFILE || errno == ENFILE)
    return formatted("{}; allow more open files (ulimit -n)", error_text(errno));
  return error_text(errno);
}

}  // namespace

ledger::Writer* make_ledger(const Settings& settings, const std::string& report_path, int pid) {
  // The report's folder may not exist yet, or may be on a network: the ledger skips such folders.
  const std::string beside = folder_of(report_path);
  const std::string wanted =
      settings.ledger_folder[0] == '\0' ? "" : absolute_path(settings.ledger_folder);
  const char* temporary = std::getenv("TMPDIR");
  const char* folders[5];
  std::size_t count = 0;
  if (!wanted.empty()) folders[count++] = wanted.c_str();
  if (report_path != path_of_no_report) folders[count++] = beside.c_str();
  if (temporary != nullptr && *temporary == '/') folders[count++] = temporary;
  folders[count++] = "/dev/shm";
  folders[count++] = "/tmp";
  ledger::Writer* made = ledger::Writer::create({.folders = {folders, count},
                                                 .hook_names = driver::row_names,
                                                 .report_path = report_path,
                                                 .pid = pid});
  if (made != nullptr && !wanted.empty() && !made->file.path().starts_with(wanted + "/"))
    log_warn(formatted("CUWARDEN_LEDGER_DIR={}: no ledger can be kept there: {}. Going on {}.",
                       settings.ledger_folder, why_none_in(wanted),
                       made->file.path().empty() ? "in memory, lost if the process is killed"
                                                 : formatted("with {}", made->file.path())));
  if (made != nullptr && settings.report_keep != 0) remove_old_ledgers(*made, settings.report_keep);
  return made;
}

std::string where_the_records_stay(std::string_view ledger) {
  if (ledger.empty()) return {};
  return formatted("; the records stay in the ledger {}: `cuwarden recover {}` makes the report",
                   ledger, ledger.substr(0, ledger.rfind('/')));
}

void say_ledger_is_incomplete(ledger::Writer& ledger, bool stopped) noexcept try {
  const auto refused = refused_growth(
      static_cast<ledger::GrowthOperation>(ledger.file.header().growth_operation.load()),
      static_cast<int>(ledger.file.header().growth_error.load()));
  if (stopped)
    log_warn(
        "recording has stopped: a lock of the ledger was not given back for ten seconds (a signal "
        "handler that jumped out of a CUDA call, or a disk that stalled). Calls go through "
        "unrecorded; the report has what came before.");
  else if (refused)
    log_warn(
        formatted("the ledger cannot grow: {}. Allocations from here on are missing in the "
                  "report. A seccomp filter, or another policy of this system, is the reason.",
                  *refused));
  else
    log_warn(
        "the ledger is full: allocations from here on are missing in the report. More fits with "
        "more room for files and addresses (ulimit -f, ulimit -v, disk space), or with a smaller "
        "CUWARDEN_STACK_DEPTH.");
} catch (...) {
}  // no memory for the line

}  // namespace cuwarden::shim
