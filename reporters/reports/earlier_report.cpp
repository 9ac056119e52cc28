#include "reporters/reports/earlier_report.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "reporters/files/file_name_limits.hpp"
#include "reporters/files/file_status.hpp"
#include "reporters/json/report_head.hpp"
#include "reporters/tables/process_facts.hpp"
#include "runtime_hooks/core/files/open_file.hpp"

namespace cuwarden {
namespace {

bool is_report_of(const std::string& path, const ledger::ProcessView& process) {
  const Descriptor file = open_to_read(path.c_str(), Links::refused);
  struct stat status {};
  if (!file || status_of(file.number(), status) != 0 || status.st_uid != geteuid()) return false;
  const auto head = read_report_head(file.number());
  return head && head->pid == process.pid && head->start == iso_8601(process.start_realtime_ns);
}

}  // namespace

std::optional<std::string> earlier_report(const ledger::ProcessView& process) {
  const std::string wanted(process.report_path);
  const std::size_t name_at = wanted.rfind('/') + 1;  // 0 without a slash
  const std::string folder = wanted.substr(0, name_at);
  // The number comes after the report: a process may have died between the two.
  const std::string name = numbered_name(wanted.substr(name_at), process.report_number.value_or(0));
  for (const std::size_t most : {name_limit(folder), shortest_name_limit}) {
    std::string path = folder + fitting_name(name, most);
    if (is_report_of(path, process)) return path;
  }
  return std::nullopt;
}

}  // namespace cuwarden
