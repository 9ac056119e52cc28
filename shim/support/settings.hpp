// The environment, read once at the first CUDA call into one immutable struct.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "reporters/words/setting_values.hpp"

namespace cuwarden::shim {

// Bytes of the longest path in a setting, with its null byte.
inline constexpr std::size_t path_limit = 4096;

// The settings in force. Defaults are the values of the members.
struct Settings {
  bool enabled = true;
  bool drop_deepbind = true;
  unsigned stack_depth = 256;  // frames of a stack; 0: stacks are not captured
  LogLevel log_level = LogLevel::warn;
  char log_file[path_limit] = "";                      // empty: stderr
  char report[path_limit] = "cuwarden-%e-%h-%p.json";  // default_report_name
  ReportConditions report_if;
  unsigned report_keep = 0;             // reports of one program in one folder; 0: all
  char ledger_folder[path_limit] = "";  // empty: make_ledger() chooses
  PoolMode pool = PoolMode::automatic;
  std::uint64_t wait_ns = 0, sync_timeout_ns = 2'000'000'000;
  SpillAmount spill;  // host memory for requests that the device has no room for
  bool meshes = true;
  // longest pause of the program for each step of meshing
  std::uint64_t mesh_pause_ns = 500'000'000;
  // Longest time for naming functions and lines in the last report.
  std::uint64_t symbol_time_ns = 1'600'000'000;  // longest_symbol_time_at_exit
  // file of `cuwarden run` to which the paths of reports are added; empty: none
  char report_list[path_limit] = "";
};

// Takes one line about a bad or unknown setting: what, where, what is accepted.
using Complain = void (*)(std::string_view line);

// Fills `settings`, which holds the defaults, from the environment. A bad value leaves the default.
void read_settings(Settings& settings, Complain complain);

// Return CUWARDEN_ENABLED and CUWARDEN_DEEPBIND (true for `drop`) from the environment, for code
// that runs before the settings are read.
bool enabled_by_environment();
bool drops_deepbind_by_environment();

}  // namespace cuwarden::shim
