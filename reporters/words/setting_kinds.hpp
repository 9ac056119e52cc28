// The kinds of settings. Each has the type of its value, and in words the texts that it accepts.
// read() stores the value of a text; if the text is not accepted, it returns false and leaves the
// value as it was. text() returns a value as the report shows it.
//
// No stdio and no exceptions in read(): the shim calls it inside the program's first CUDA call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "reporters/words/setting_values.hpp"

namespace cuwarden::setting_kinds {

// Bytes that a path may have in a setting, with the 0 at its end.
inline constexpr std::size_t path_limit = 4096;

struct ZeroOrOne {
  using Value = bool;
  static constexpr std::string_view accepted = "0 or 1";
  static bool read(Value&, std::string_view);
  static std::string text(Value);
};

struct OnOff {
  using Value = bool;
  static constexpr std::string_view accepted = accepted_on_off;
  static bool read(Value&, std::string_view);
  static std::string text(Value);
};

struct DropOrKeep {
  using Value = bool;  // true: drop
  static constexpr std::string_view accepted = "drop or keep";
  static bool read(Value&, std::string_view);
  static std::string text(Value);
};

// A path, which may not be empty.
struct AnyPath {
  using Value = char[path_limit];  // ends with a 0
  static constexpr std::string_view accepted = "a path";
  static bool read(Value&, std::string_view);
  static std::string text(const Value&);
};

struct Folder : AnyPath {
  static constexpr std::string_view accepted = "a folder";
};

struct ReportPath : AnyPath {
  static constexpr std::string_view accepted = accepted_report_path;
  static bool read(Value&, std::string_view);
};

struct ReportIf {
  using Value = ReportConditions;
  static constexpr std::string_view accepted = accepted_report_if;
  static bool read(Value&, std::string_view);
  static std::string text(const Value&);
};

struct ReportKeep {
  using Value = unsigned;  // reports of one program in one folder; 0: all
  static constexpr std::string_view accepted = accepted_report_keep;
  static bool read(Value&, std::string_view);
  static std::string text(Value);
};

struct StackDepth {
  using Value = unsigned;  // frames
  static constexpr std::string_view accepted = accepted_stack_depth;
  static bool read(Value&, std::string_view);
  static std::string text(Value);
};

struct LogTarget {
  struct Value {
    LogLevel level{};
    char file[path_limit]{};  // empty: stderr
  };
  static constexpr std::string_view accepted = accepted_log;
  static bool read(Value&, std::string_view);
  static std::string text(const Value&);
};

struct Pool {
  using Value = PoolMode;
  static constexpr std::string_view accepted = accepted_pool_mode;
  static bool read(Value&, std::string_view);
  static std::string text(Value);
};

struct Time {
  using Value = std::uint64_t;  // nanoseconds
  static constexpr std::string_view accepted = accepted_duration;
  static bool read(Value&, std::string_view);
  static std::string text(Value);
};

struct Spill {
  using Value = SpillAmount;
  static constexpr std::string_view accepted = accepted_spill;
  static bool read(Value&, std::string_view);
  static std::string text(const Value&);
};

}  // namespace cuwarden::setting_kinds
