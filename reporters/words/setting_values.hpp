// Values of settings, as the environment and the command line give them. Each parser returns null
// if the text is not accepted. The constants accepted_* describe in words the accepted texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime_hooks/core/settings/setting_types.hpp"

namespace cuwarden {

// Texts for the enumerators of LogLevel in the setting CUWARDEN_LOG, in the enumerators' order.
inline constexpr std::string_view log_level_names[] = {"off", "error", "warn", "info", "debug"};
// Texts for the enumerators of PoolMode in the setting CUWARDEN_POOL, in the enumerators' order.
inline constexpr std::string_view pool_mode_names[] = {"off", "rescue", "on", "auto"};
// Texts for the enumerators of ReachabilityMode in the setting CUWARDEN_REACHABILITY, in the
// enumerators' order.
inline constexpr std::string_view reachability_mode_names[] = {"off", "on", "auto"};

// The words for the conditions in the setting CUWARDEN_REPORT_IF, in the order of the fields of
// ReportConditions.
inline constexpr std::string_view report_condition_names[] = {"leak", "incident", "abnormal"};

// Parses a log level: "off", "error", "warn", "info" or "debug", the part of CUWARDEN_LOG before
// the colon. Returns null for any other text.
std::optional<LogLevel> parse_log_level(std::string_view text);
// Parses a value of CUWARDEN_POOL: "off", "rescue", "on" or "auto". Returns null for any other
// text.
std::optional<PoolMode> parse_pool_mode(std::string_view text);
// Parses a value of CUWARDEN_REACHABILITY: "off", "on" or "auto". Returns null for any other text.
std::optional<ReachabilityMode> parse_reachability_mode(std::string_view text);
// Parses a value of CUWARDEN_MESH: "off", "on" or "verify". The last two may have ":kernel" behind
// them, and then ":visible". Returns null for any other text.
std::optional<MeshMode> parse_mesh_mode(std::string_view text);
// Parses a decimal number from 0 to `most`; null if the text is no such number.
std::optional<unsigned> parse_number(std::string_view text, unsigned most);
// Parses a length of time such as "500ms", "30s", "2m" (minutes), "1h" or "0", of at most 366 days.
// Fractions are not accepted. Returns nanoseconds; null if the text is no such time.
std::optional<std::uint64_t> parse_duration_ns(std::string_view text);
// Parses a value of CUWARDEN_SPILL: an amount of host memory such as "8GiB", "25%" or "0". A number
// above 0 needs its unit. A ":visible" behind the amount sets SpillAmount::is_visible. Returns null
// for any other text.
std::optional<SpillAmount> parse_spill(std::string_view text);

// Parses a value of CUWARDEN_REPORT_IF: "always" (all conditions false), or names of conditions
// with commas between them, such as "leak,abnormal". Returns null for any other text.
std::optional<ReportConditions> parse_report_if(std::string_view text);
// Returns the conditions as text that parse_report_if() accepts; "always" if all are false.
std::string report_if_text(const ReportConditions&);
// Parses a value of CUWARDEN_REPORT_KEEP, the number of reports of one program that stay in a
// folder: from 1 to 1000000. Returns null for any other text.
std::optional<unsigned> parse_report_keep(std::string_view text);

// True if the text is accepted as value of CUWARDEN_REPORT. Not accepted are an empty text, "-" and
// paths below /proc. Below /dev, only /dev/null and paths below /dev/shm are accepted. Behind a
// percent sign, only the letters of %e %h %p %j %s %a %r %% are accepted.
bool is_report_path(std::string_view text);
// The value of CUWARDEN_REPORT for which no report is written.
inline constexpr std::string_view path_of_no_report = "/dev/null";
// Name of the report's file if CUWARDEN_REPORT is not set, or is a folder. %e stands for the
// program's name, %h for the host's, %p for the process id.
inline constexpr char default_report_name[] = "cuwarden-%e-%h-%p.json";

// True if the text is a list of patterns of file paths, with commas between them. A pattern has no
// space, and at least one character besides slashes and stars. It may end in a star if it has no
// slash; stars elsewhere are not accepted.
bool are_file_patterns(std::string_view text);
// Words for the accepted values of CUWARDEN_LIBRARIES, in messages about other values.
inline constexpr char accepted_file_patterns[] =
    "patterns of files with commas and no spaces between them, such as /mylib/,libmylib*";

// Words for the accepted values of CUWARDEN_LOG, in messages about other values.
inline constexpr char accepted_log[] = "off, error, warn, info or debug, with :FILE into a file";
// Words for the accepted values of CUWARDEN_POOL, in messages about other values.
inline constexpr char accepted_pool_mode[] = "off, rescue, on or auto";
// Words for the accepted values of CUWARDEN_REACHABILITY, in messages about other values.
inline constexpr char accepted_reachability_mode[] = "auto, on or off";
// Words for the accepted values of CUWARDEN_MESH, in messages about other values.
inline constexpr char accepted_mesh_mode[] =
    "on, off or verify; behind on or verify, :kernel, :visible or :kernel:visible";
// Words for the accepted values of CUWARDEN_STACK_DEPTH, in messages about other values.
inline constexpr char accepted_stack_depth[] = "a number of frames from 0 to 1024";
// Words for the accepted values of settings that are times, in messages about other values.
inline constexpr char accepted_duration[] = "a time such as 500ms, 30s or 2m";
// Words for the accepted values of CUWARDEN_SPILL, in messages about other values.
inline constexpr char accepted_spill[] = "an amount as 8GiB, 8GB or 25%, or as 8GiB:visible";
// Words for the accepted values of CUWARDEN_REPORT_IF, in messages about other values.
inline constexpr char accepted_report_if[] =
    "always, leak, incident or abnormal, or several with commas between them";
// Words for the accepted values of CUWARDEN_REPORT_KEEP, in messages about other values.
inline constexpr char accepted_report_keep[] = "a number of reports from 1 to 1000000";
// Words for the accepted values of CUWARDEN_REPORT, in messages about other values.
inline constexpr char accepted_report_path[] =
    "a path of a file or folder outside /proc and /dev or in /dev/shm (%e %h %p %j %s %a %r %% are "
    "replaced), or /dev/null for no report";

}  // namespace cuwarden
