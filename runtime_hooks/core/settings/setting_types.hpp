// Types of the values of settings. The kinds of settings in settings.def name them. The structs of
// the same names in reporters/words/setting_kinds.hpp parse the texts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuwarden {

// Most bytes of a path in a setting, including the zero byte at its end. Longer paths are not
// accepted.
inline constexpr std::size_t path_limit = 4096;

// The level of CUWARDEN_LOG: messages of this level and of more severe ones are written. `error` is
// the most severe level, `debug` the least severe one. `off`: no messages are written.
enum class LogLevel { off, error, warn, info, debug };
// The value of CUWARDEN_POOL. `off`: the driver serves all requests. `rescue`: cuwarden tries to
// serve requests that the driver refused. `on`: as `rescue`, and cuwarden's own pool also serves
// small or badly rounded requests and page-locked memory from the start. `automatic`: as `rescue`,
// and small or badly rounded device requests come from the pool once much memory is locked in the
// driver's slabs (2 MiB pages of small requests).
enum class PoolMode { off, rescue, on, automatic };
// The value of CUWARDEN_REACHABILITY. `off`: no search for pointers to allocations is made at the
// process's end. `on`: the search is made, however long it takes. `automatic`: the search is made,
// and ends after a short time (longest_search_ns of shim/reachability).
enum class ReachabilityMode { off, on, automatic };

// The value of CUWARDEN_SPILL: the amount of host memory that refused device requests of the
// process may use, in bytes or in percent of the host's RAM. `bytes` and `percent` are both 0 if no
// request may use host memory.
struct SpillAmount {
  std::uint64_t bytes = 0;  // bytes of host memory; 0 if `percent` is given
  unsigned percent = 0;     // share of the host's RAM, from 0 to 100; 0 if `bytes` is given
  bool is_visible = false;  // true if cuMemGetInfo counts the amount as free memory of the device
};

// The value of CUWARDEN_MESH: how memory of cuwarden's pool may be moved (meshing).
struct MeshMode {
  bool moves = true;      // true: memory of the pool may be moved; false: no memory is moved
  bool verifies = false;  // true: each copy of moved memory is compared with the original
  // True if cuMemGetInfo counts as free the memory that cuwarden could free by moving memory.
  bool is_visible = false;
  // True if a kernel copies the memory that is moved. The kernel is loaded into the program's
  // contexts.
  bool by_kernel = false;
  bool operator==(const MeshMode&) const = default;  // True if all members are equal.
};

// The value of CUWARDEN_REPORT_IF: the conditions under which a report is written at the end of the
// process. One condition that is true here has to hold. If all are false here, a report is always
// written.
struct ReportConditions {
  // Condition for a report: memory was not freed, or the records may lack allocations.
  bool leak = false;
  // Condition for a report: a request was refused for lack of memory, or the records lack
  // allocations.
  bool incident = false;
  // Condition for a report: a signal ended the process, its exit status is unknown or other than 0,
  // or nothing shows how it ended.
  bool abnormal = false;
  bool operator==(const ReportConditions&) const = default;  // True if all members are equal.
};
// The value of CUWARDEN_LOG.
struct LogTarget {
  LogLevel level{};         // messages of this level and of more severe ones are written
  char file[path_limit]{};  // path of the file to which messages are written; empty: stderr
};

// The type of the value of each kind of setting that settings.def names.
namespace setting_types {

using ZeroOrOne = bool;   // true for "1"
using AutoOrOff = bool;   // true for "auto"
using OnOrOff = bool;     // true for "on"
using DropOrKeep = bool;  // true for "drop"
// Path, with a zero byte at its end; empty: not set.
using AnyPath = char[path_limit];
using Folder = AnyPath;             // path of a folder
using SuppressionFile = AnyPath;    // path of a file of rules that exclude known leaks
using ReportPath = AnyPath;         // path of the report, or a pattern for it
using RangeName = AnyPath;          // name of NVTX ranges, or its beginning and a star
using FilePatterns = AnyPath;       // patterns that match paths of files, with commas between them
using ReportIf = ReportConditions;  // conditions of which one must hold for a report
// Exit status, from 1 to 255, that takes the place of 0 if leaks remain; 0: the status stays.
using ExitStatus = unsigned;
using ReportKeep = unsigned;            // number of reports, from 1; 0: all reports stay
using StackDepth = unsigned;            // number of frames, up to 1024; 0: no stacks are recorded
using LogTarget = cuwarden::LogTarget;  // least severe message that is written, and the file
using Pool = PoolMode;                  // choice of the requests that cuwarden serves
using Reachability = ReachabilityMode;  // search for pointers to allocations
using Mesh = MeshMode;                  // choices about moves of the pool's memory
using Time = std::uint64_t;             // length of time in nanoseconds
using Spill = SpillAmount;              // amount of host memory for refused device requests

}  // namespace setting_types

}  // namespace cuwarden
