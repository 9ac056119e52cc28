#include "reporters/words/setting_kinds.hpp"

#include <cstring>
#include <optional>

#include "runtime_hooks/core/files/absolute_path.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"

namespace cuwarden::setting_kinds {
namespace {

// Assigns the value to `to`. If there is no value, leaves `to` as it is and returns false.
template <class Value>
bool assign(Value& to, const std::optional<Value>& value) {
  if (value) to = *value;
  return value.has_value();
}

bool copy(char (&to)[path_limit], std::string_view from) {
  if (from.empty() || from.size() >= path_limit) return false;
  std::memcpy(to, from.data(), from.size());
  to[from.size()] = '\0';
  return true;
}

}  // namespace

bool AnyPath::read(Value& to, std::string_view text) { return copy(to, text); }
std::string AnyPath::text(const Value& value) { return value; }

bool SuppressionFile::read(Value& to, std::string_view text) {
  return !text.empty() && copy(to, absolute_path(std::string(text)));
}

bool ReportPath::read(Value& to, std::string_view text) {
  return is_report_path(text) && copy(to, text);
}

bool FilePatterns::read(Value& to, std::string_view text) {
  return are_file_patterns(text) && copy(to, text);
}

bool ReportIf::read(Value& to, std::string_view text) { return assign(to, parse_report_if(text)); }
std::string ReportIf::text(const Value& value) { return report_if_text(value); }

bool ExitStatus::read(Value& to, std::string_view text) {
  return assign(to, parse_number(text, 255));
}
std::string ExitStatus::text(Value value) { return std::to_string(value); }

bool ReportKeep::read(Value& to, std::string_view text) {
  return assign(to, parse_report_keep(text));
}
std::string ReportKeep::text(Value value) { return value == 0 ? "" : std::to_string(value); }

bool StackDepth::read(Value& to, std::string_view text) {
  return assign(to, parse_number(text, ledger::deepest_stack));
}
std::string StackDepth::text(Value value) { return std::to_string(value); }

bool LogTarget::read(Value& to, std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto level = parse_log_level(text.substr(0, colon));
  if (!level) return false;
  if (colon != std::string_view::npos && !copy(to.file, text.substr(colon + 1))) return false;
  to.level = *level;
  return true;
}
std::string LogTarget::text(const Value& value) {
  const std::string level(log_level_names[static_cast<int>(value.level)]);
  return *value.file == '\0' ? level : level + ":" + value.file;
}

bool Pool::read(Value& to, std::string_view text) { return assign(to, parse_pool_mode(text)); }
std::string Pool::text(Value value) {
  return std::string(pool_mode_names[static_cast<int>(value)]);
}

bool Reachability::read(Value& to, std::string_view text) {
  return assign(to, parse_reachability_mode(text));
}
std::string Reachability::text(Value value) {
  return std::string(reachability_mode_names[static_cast<int>(value)]);
}

bool Mesh::read(Value& to, std::string_view text) { return assign(to, parse_mesh_mode(text)); }
std::string Mesh::text(const Value& value) {
  return std::string(!value.moves     ? "off"
                     : value.verifies ? "verify"
                                      : "on") +
         (value.by_kernel ? ":kernel" : "") + (value.is_visible ? ":visible" : "");
}

bool Time::read(Value& to, std::string_view text) { return assign(to, parse_duration_ns(text)); }
std::string Time::text(Value value) { return std::to_string(value / 1'000'000) + "ms"; }

bool Spill::read(Value& to, std::string_view text) { return assign(to, parse_spill(text)); }
std::string Spill::text(const Value& value) {
  const std::string amount = value.percent != 0        ? std::to_string(value.percent) + "%"
                             : value.bytes == 0        ? "0"
                             : value.bytes % 1024 == 0 ? std::to_string(value.bytes / 1024) + "KiB"
                                                       : std::to_string(value.bytes) + "B";
  return amount + (value.is_visible ? ":visible" : "");
}

}  // namespace cuwarden::setting_kinds
