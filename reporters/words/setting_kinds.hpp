// The kinds of settings, to which the rows of settings.def refer. Each kind is a struct. `Value` is
// the type of the setting's value; `accepted` says in words which texts are accepted. read() parses
// a text and stores the value; if the text is not accepted, read() returns false and leaves the
// value unchanged. text() returns a value as the report shows it.
//
// read() uses no stdio and no exceptions: the shim calls it inside the program's first CUDA call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "reporters/words/setting_values.hpp"

namespace cuwarden::setting_kinds {

// Most bytes of a path in a setting, including the zero byte at its end. Longer paths are not
// accepted.
inline constexpr std::size_t path_limit = 4096;

// Kind of a setting that is "0" (false) or "1" (true).
struct ZeroOrOne {
  using Value = bool;
  static constexpr std::string_view accepted = "0 or 1";
  static bool read(Value&, std::string_view);
  static std::string text(Value);
};

// Kind of a setting that is "drop" (true) or "keep" (false).
struct DropOrKeep {
  using Value = bool;
  static constexpr std::string_view accepted = "drop or keep";
  static bool read(Value&, std::string_view);
  static std::string text(Value);
};

// Kind of a setting that is a path, which must not be empty and is otherwise not checked.
struct AnyPath {
  using Value = char[path_limit];  // path, with a zero byte at its end; empty: not set
  static constexpr std::string_view accepted = "a path";
  static bool read(Value&, std::string_view);
  static std::string text(const Value&);
};

// Kind of a setting that is the path of a folder, which must not be empty and is not checked
// further.
struct Folder : AnyPath {
  static constexpr std::string_view accepted = "a folder";
};

// Kind of CUWARDEN_REPORT: a path for which is_report_path() is true.
struct ReportPath : AnyPath {
  static constexpr std::string_view accepted = accepted_report_path;
  static bool read(Value&, std::string_view);
};

// Kind of CUWARDEN_REPORT_IF: the conditions under which a report is written.
struct ReportIf {
  using Value = ReportConditions;
  static constexpr std::string_view accepted = accepted_report_if;
  static bool read(Value&, std::string_view);
  static std::string text(const Value&);
};

// Kind of CUWARDEN_REPORT_KEEP: the number of reports of one program that stay in a folder.
struct ReportKeep {
  using Value = unsigned;  // 1 or more; 0 if the setting is not set: all reports stay
  static constexpr std::string_view accepted = accepted_report_keep;
  static bool read(Value&, std::string_view);
  static std::string text(Value);
};

// Kind of CUWARDEN_STACK_DEPTH: the number of innermost frames that are kept of each allocation's
// call stack.
struct StackDepth {
  using Value = unsigned;  // number of frames, up to 1024; 0: no stacks are recorded
  static constexpr std::string_view accepted = accepted_stack_depth;
  static bool read(Value&, std::string_view);
  static std::string text(Value);
};

// Kind of CUWARDEN_LOG: a level, with ":FILE" behind it for messages to a file.
struct LogTarget {
  struct Value {
    LogLevel level{};         // least severe message that is written
    char file[path_limit]{};  // path of the file to which messages are written; empty: stderr
  };
  static constexpr std::string_view accepted = accepted_log;
  static bool read(Value&, std::string_view);
  static std::string text(const Value&);
};

// Kind of CUWARDEN_POOL: the requests that cuwarden serves instead of the driver.
struct Pool {
  using Value = PoolMode;
  static constexpr std::string_view accepted = accepted_pool_mode;
  static bool read(Value&, std::string_view);
  static std::string text(Value);
};

// Kind of CUWARDEN_MESH: how the pool's memory may be moved.
struct Mesh {
  using Value = MeshMode;
  static constexpr std::string_view accepted = accepted_mesh_mode;
  static bool read(Value&, std::string_view);
  static std::string text(const Value&);
};

// Kind of a setting that is a length of time, such as "500ms", "30s" or "2m".
struct Time {
  using Value = std::uint64_t;  // nanoseconds
  static constexpr std::string_view accepted = accepted_duration;
  static bool read(Value&, std::string_view);
  static std::string text(Value);
};

// Kind of CUWARDEN_SPILL: the host memory that refused device requests may use.
struct Spill {
  using Value = SpillAmount;
  static constexpr std::string_view accepted = accepted_spill;
  static bool read(Value&, std::string_view);
  static std::string text(const Value&);
};

}  // namespace cuwarden::setting_kinds
