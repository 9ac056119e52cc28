// Values of settings, as the environment and the command line give them. A parser returns none if
// the text is not accepted; a constant `accepted_…` says in words which texts are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cuwarden {

enum class LogLevel { off, error, warn, info, debug };
enum class PoolMode { off, rescue, on, automatic };
// Names of the enumerators, in their order.
inline constexpr std::string_view log_level_names[] = {"off", "error", "warn", "info", "debug"};
inline constexpr std::string_view pool_mode_names[] = {"off", "rescue", "on", "auto"};

// The value of CUWARDEN_SPILL: bytes of host memory, or a share of the host's RAM in percent. Both
// are 0 if nothing is spilled.
struct SpillAmount {
  std::uint64_t bytes = 0;
  unsigned percent = 0;
  bool is_visible = false;  // true if cuMemGetInfo counts the amount as free
};

// The value of CUWARDEN_REPORT_IF: a report is written if one of these conditions holds, or if none
// is set.
struct ReportConditions {
  bool leak = false;      // something was not freed, or allocations may be missing
  bool incident = false;  // a request was refused
  bool abnormal = false;  // the process ended by a signal, with another status than 0, or unseen
  bool operator==(const ReportConditions&) const = default;
};
inline constexpr std::string_view report_condition_names[] = {"leak", "incident", "abnormal"};

// the text before the colon of CUWARDEN_LOG
std::optional<LogLevel> parse_log_level(std::string_view text);
std::optional<PoolMode> parse_pool_mode(std::string_view text);
std::optional<bool> parse_on_off(std::string_view text);
std::optional<unsigned> parse_number(std::string_view text, unsigned most);
std::optional<std::uint64_t> parse_duration_ns(std::string_view text);
std::optional<SpillAmount> parse_spill(std::string_view text);

// Parses "always", or names of conditions with commas between them.
std::optional<ReportConditions> parse_report_if(std::string_view text);
std::string report_if_text(const ReportConditions&);
std::optional<unsigned> parse_report_keep(std::string_view text);  // 1 or larger

bool is_report_path(std::string_view text);
// Value of CUWARDEN_REPORT for which no report is ever written.
inline constexpr std::string_view path_of_no_report = "/dev/null";
inline constexpr char default_report_name[] = "cuwarden-%e-%h-%p.json";

// Texts for error lines: the values that each setting accepts.
inline constexpr char accepted_log[] = "off, error, warn, info or debug, with :FILE into a file";
inline constexpr char accepted_pool_mode[] = "off, rescue, on or auto";
inline constexpr char accepted_on_off[] = "on or off";
inline constexpr char accepted_stack_depth[] = "a number of frames from 0 to 1024";
inline constexpr char accepted_duration[] = "a time as 500ms, 30s or 2m";
inline constexpr char accepted_spill[] = "an amount as 8GiB, 8GB or 25%, or as 8GiB:visible";
inline constexpr char accepted_report_if[] =
    "always, leak, incident or abnormal, or several with commas between them";
inline constexpr char accepted_report_keep[] = "a number of reports from 1 to 1000000";
inline constexpr char accepted_report_path[] =
    "a path of a file or folder (%e %h %p %j %s %a %r %% are replaced), or /dev/null for no report";

}  // namespace cuwarden
