// The kinds of settings, to which the rows of settings.def refer. Each kind is a struct. `Value` is
// the type of the setting's value; `accepted` says in words which texts are accepted. read() parses
// a text and stores the value; if the text is not accepted, read() returns false and leaves the
// value unchanged. text() returns a value as the report shows it.
//
// read() uses no stdio and no exceptions: the shim calls it inside the program's first CUDA call.
#pragma once

#include <string>
#include <string_view>

#include "reporters/words/setting_values.hpp"
#include "runtime_hooks/core/settings/setting_types.hpp"

namespace cuwarden::setting_kinds {

// Base of a kind of setting that is one of two words: Kind::yes stands for true, Kind::no for
// false.
template <class Kind>
struct OneOfTwoWords {
  using Value = bool;  // true for the word Kind::yes, false for Kind::no
  // Stores true for the text Kind::yes, and false for Kind::no. Returns false, and stores nothing,
  // if the text is neither word in exactly this spelling.
  static bool read(Value& to, std::string_view text) {
    if (text != Kind::yes && text != Kind::no) return false;
    to = text == Kind::yes;
    return true;
  }
  // Returns the word that stands for the value.
  static std::string text(Value value) { return std::string(value ? Kind::yes : Kind::no); }
};

// Kind of a setting that is "0" (false) or "1" (true).
struct ZeroOrOne : OneOfTwoWords<ZeroOrOne> {
  static constexpr std::string_view yes = "1", no = "0", accepted = "0 or 1";
};
// Kind of a setting that is "auto" (true) or "off" (false).
struct AutoOrOff : OneOfTwoWords<AutoOrOff> {
  static constexpr std::string_view yes = "auto", no = "off", accepted = "auto or off";
};
// Kind of a setting that is "on" (true) or "off" (false).
struct OnOrOff : OneOfTwoWords<OnOrOff> {
  static constexpr std::string_view yes = "on", no = "off", accepted = "on or off";
};
// Kind of a setting that is "drop" (true) or "keep" (false).
struct DropOrKeep : OneOfTwoWords<DropOrKeep> {
  static constexpr std::string_view yes = "drop", no = "keep", accepted = "drop or keep";
};

// Kind of a setting that is a path, which must not be empty and is otherwise not checked.
struct AnyPath {
  using Value = setting_types::AnyPath;  // path, with a zero byte at its end; empty: not set
  // Texts that this kind of setting accepts, in words.
  static constexpr std::string_view accepted = "a path";
  // Stores the path, with a zero byte at its end. Returns false, and stores nothing, if the text is
  // empty or has path_limit bytes or more.
  static bool read(Value&, std::string_view);
  // Returns the path; empty if the setting is not set.
  static std::string text(const Value&);
};

// Kind of a setting that is the path of a folder, which must not be empty and is not checked
// further.
struct Folder : AnyPath {
  // Texts that this kind of setting accepts, in words.
  static constexpr std::string_view accepted = "a folder";
};

// Type, parser and text of the setting CUWARDEN_SUPPRESSIONS: the path of a file of rules that
// exclude known leaks. The path is not checked further.
struct SuppressionFile : AnyPath {
  // Texts that this kind of setting accepts, in words.
  static constexpr std::string_view accepted = "the path of a file";
  // Stores the path, absolute and with a zero byte at its end. Returns false, and stores nothing,
  // if the text is empty or the absolute path has path_limit bytes or more. If the current folder
  // is not known, the path stays relative.
  static bool read(Value&, std::string_view);
};

// Type, parser and text of the setting CUWARDEN_REPORT: a path for which is_report_path() is true.
struct ReportPath : AnyPath {
  // Texts that this kind of setting accepts, in words.
  static constexpr std::string_view accepted = accepted_report_path;
  // Stores the path, with a zero byte at its end. Returns false, and stores nothing, if
  // is_report_path() is false or the text is too long.
  static bool read(Value&, std::string_view);
};

// Kind of a setting that is the name of NVTX ranges. A star at its end matches any further text.
struct RangeName : AnyPath {
  // Texts that this kind of setting accepts, in words.
  static constexpr std::string_view accepted = "the name of an NVTX range, or its beginning and *";
};

// Type, parser and text of the setting CUWARDEN_LIBRARIES: patterns that match paths of files, with
// commas between them.
struct FilePatterns : AnyPath {
  // Texts that this kind of setting accepts, in words.
  static constexpr std::string_view accepted = accepted_file_patterns;
  // Stores the text, with a zero byte at its end. Returns false, and stores nothing, if
  // are_file_patterns() is false or the text is too long.
  static bool read(Value&, std::string_view);
};

// Type, parser and text of the setting CUWARDEN_REPORT_IF: the conditions under which a report is
// written.
struct ReportIf {
  // Conditions of which one must hold; all false: a report is always written.
  using Value = setting_types::ReportIf;
  // Texts that this kind of setting accepts, in words.
  static constexpr std::string_view accepted = accepted_report_if;
  // Parses a text and stores its value. Returns false, and stores nothing, if the text is not
  // accepted.
  static bool read(Value&, std::string_view);
  // Returns the value as text: "always", or names of conditions such as "leak,abnormal".
  static std::string text(const Value&);
};

// Type, parser and text of the setting CUWARDEN_EXITCODE: an exit status.
struct ExitStatus {
  using Value = setting_types::ExitStatus;  // 1 to 255; 0: the exit status of the process stays
  // Texts that this kind of setting accepts, in words.
  static constexpr std::string_view accepted = "an exit status from 0 to 255";
  // Parses a text and stores its value. Returns false, and stores nothing, if the text is not
  // accepted.
  static bool read(Value&, std::string_view);
  // Returns the exit status as text.
  static std::string text(Value);
};

// Type, parser and text of the setting CUWARDEN_REPORT_KEEP: the number of reports of one program
// that stay in a folder.
struct ReportKeep {
  // Number of reports, from 1; 0: the setting is not set, and all reports stay.
  using Value = setting_types::ReportKeep;
  // Texts that this kind of setting accepts, in words.
  static constexpr std::string_view accepted = accepted_report_keep;
  // Parses a text and stores its value. Returns false, and stores nothing, if the text is not
  // accepted.
  static bool read(Value&, std::string_view);
  // Returns the number of reports as text; empty for 0, when the setting is not set.
  static std::string text(Value);
};

// Type, parser and text of the setting CUWARDEN_STACK_DEPTH: the number of innermost frames that
// are kept of each allocation's call stack.
struct StackDepth {
  using Value =
      setting_types::StackDepth;  // number of frames, up to 1024; 0: no stacks are recorded
  // Texts that this kind of setting accepts, in words.
  static constexpr std::string_view accepted = accepted_stack_depth;
  // Parses a text and stores its value. Returns false, and stores nothing, if the text is not
  // accepted.
  static bool read(Value&, std::string_view);
  // Returns the number of frames that are kept of each call stack, as text.
  static std::string text(Value);
};

// Type, parser and text of the setting CUWARDEN_LOG: a level, which may have ":FILE" behind it to
// write messages to a file.
struct LogTarget {
  using Value = setting_types::LogTarget;  // level, and the file for messages
  // Texts that this kind of setting accepts, in words.
  static constexpr std::string_view accepted = accepted_log;
  // Parses a text and stores its value. Returns false, and stores nothing, if the text is not
  // accepted.
  static bool read(Value&, std::string_view);
  // Returns the value as text, such as "warn", or "warn:FILE" for messages to a file.
  static std::string text(const Value&);
};

// Type, parser and text of the setting CUWARDEN_POOL: the choice of the requests that cuwarden
// serves instead of the driver.
struct Pool {
  using Value = setting_types::Pool;  // choice of the requests that cuwarden serves
  // Texts that this kind of setting accepts, in words.
  static constexpr std::string_view accepted = accepted_pool_mode;
  // Parses a text and stores its value. Returns false, and stores nothing, if the text is not
  // accepted.
  static bool read(Value&, std::string_view);
  // Returns the value as text: "off", "rescue", "on" or "auto".
  static std::string text(Value);
};

// Type, parser and text of the setting CUWARDEN_REACHABILITY: the choice to search, or not, for
// pointers to allocations at the process's end.
struct Reachability {
  // Search for pointers to allocations: none, one of limited time, or one without a limit.
  using Value = setting_types::Reachability;
  // Texts that this kind of setting accepts, in words.
  static constexpr std::string_view accepted = accepted_reachability_mode;
  // Parses a text and stores its value. Returns false, and stores nothing, if the text is not
  // accepted.
  static bool read(Value&, std::string_view);
  // Returns the value as text: "off", "on" or "auto".
  static std::string text(Value);
};

// Type, parser and text of the setting CUWARDEN_MESH: how the pool's memory may be moved.
struct Mesh {
  // Four choices: memory may be moved; copies are compared with the originals; cuMemGetInfo counts
  // memory as free that moves could free; a kernel makes the copies.
  using Value = setting_types::Mesh;
  // Texts that this kind of setting accepts, in words.
  static constexpr std::string_view accepted = accepted_mesh_mode;
  // Parses a text and stores its value. Returns false, and stores nothing, if the text is not
  // accepted.
  static bool read(Value&, std::string_view);
  // Returns the value as text, such as "on" or "verify:visible".
  static std::string text(const Value&);
};

// Kind of a setting that is a length of time, such as "500ms", "30s" or "2m".
struct Time {
  using Value = setting_types::Time;  // length of time in nanoseconds
  // Texts that this kind of setting accepts, in words.
  static constexpr std::string_view accepted = accepted_duration;
  // Parses a text and stores its value. Returns false, and stores nothing, if the text is not
  // accepted.
  static bool read(Value&, std::string_view);
  // Returns the length of time as text in milliseconds, such as "30000ms".
  static std::string text(Value);
};

// Type, parser and text of the setting CUWARDEN_SPILL: the host memory that refused device requests
// may use.
struct Spill {
  using Value = setting_types::Spill;  // amount of host memory that refused device requests may use
  // Texts that this kind of setting accepts, in words.
  static constexpr std::string_view accepted = accepted_spill;
  // Parses a text and stores its value. Returns false, and stores nothing, if the text is not
  // accepted.
  static bool read(Value&, std::string_view);
  // Returns the amount as text, such as "8388608KiB", or "25%" for a share of the host's RAM. With
  // ":visible" behind it if is_visible is true.
  static std::string text(const Value&);
};

}  // namespace cuwarden::setting_kinds
