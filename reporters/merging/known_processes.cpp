#include "reporters/merging/known_processes.hpp"

#include <algorithm>

#include "reporters/words/paths.hpp"

namespace cuwarden {

ProcessIdentity identity_of(const model::Process& process) {
  return {process.host, process.pid, process.start, process.program};
}

ProcessIdentity identity_of(const model::MergedProcess& process) {
  return {process.host, process.pid, process.start, process.program};
}

std::string KnownProcesses::key_of(const ProcessIdentity& process) {
  if (!process.pid || process.start.empty()) return "";
  return std::to_string(*process.pid) + " " + process.start + " " +
         std::string(file_name(process.program.value_or("")));
}

std::optional<std::size_t> KnownProcesses::find(const ProcessIdentity& process) const {
  const auto known = by_key_.find(key_of(process));
  if (known == by_key_.end()) return std::nullopt;
  const auto same = std::ranges::find_if(known->second, [&](const auto& row) {
    return !row.first || !process.host || row.first == process.host;
  });
  return same == known->second.end() ? std::nullopt : std::optional(same->second);
}

void KnownProcesses::add(const ProcessIdentity& process, std::size_t number) {
  const std::string key = key_of(process);
  if (!key.empty()) by_key_[key].emplace_back(process.host, number);
}

}  // namespace cuwarden
