// The verbs of the `cuwarden` command, such as `cuwarden report`: the options of each, and the
// function that runs it. The function returns the command's exit status: 0 for success, 1 if a
// check that the user asked for failed, 2 for wrong usage or input.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reporters/formats/formats.hpp"
#include "reporters/text/text_report.hpp"

namespace cuwarden {

// Options of `cuwarden report`.
struct ReportVerb {
  // Paths of reports, of ledgers that killed processes left, or of folders with reports; "-":
  // standard input.
  std::vector<std::string> files;
  TextOptions text;  // options of the text, such as the grouping and the number of groups
  // Format of a report that is shown whole; of several reports in a folder one line each is shown.
  const Format* format = &report_formats().front();
  // True: exit with 1 if there are leaks, or if a report is too incomplete to tell.
  bool fail_on_leak = false;
  std::vector<std::string> symbol_folders;  // folders of debug files, which are found by build id
  bool redact = false;  // true: write a copy without private facts instead of showing the report
  // Path of the redacted copy; empty: beside the report, with another name; "-": standard output.
  std::string output;
};
// Shows reports, or writes redacted copies. Returns 0, 1 (a check failed) or 2 (a file could not be
// read or written).
int report_verb(const ReportVerb&);

// Options of `cuwarden run`.
struct RunVerb {
  std::vector<std::string> command;  // the program and its arguments; not empty
  // Environment variables to set for the program, each with its value, such as CUWARDEN_POOL and
  // "on".
  std::vector<std::pair<std::string, std::string>> settings;
  std::optional<std::uint64_t> simulated_bytes;  // memory of a simulated GPU; null: a real GPU
};
// Runs a program with libcuwarden.so preloaded, and shows the reports of its processes. Returns the
// program's exit status; 128 and the signal's number if a signal killed the program; 127 or 126 if
// the program is not found or cannot be run; 2 if cuwarden is not set up for it.
int run_verb(const RunVerb&);

// Options of `cuwarden snapshot`.
struct SnapshotVerb {
  pid_t pid = 0;  // the running process whose report is made
  // Format in which the report is shown on standard output; null: it is written as JSON to
  // `output`.
  const Format* format = nullptr;
  // Path of the report, or of a folder for it; empty: the current folder; "-": standard output.
  std::string output;
};
// Makes the report of a running process, from its ledger and without disturbing the process.
// Returns 0, or 2 if there is no ledger or the report could not be written.
int snapshot_verb(const SnapshotVerb&);

// Options of `cuwarden recover`.
struct RecoverVerb {
  // Paths of ledgers, or of folders with ledgers; empty: the folders of usual_ledger_folders().
  std::vector<std::string> locations;
  // Longest time that root spends on one ledger of another user; null: usual_time_for_a_ledger (two
  // minutes).
  std::optional<std::chrono::nanoseconds> longest;
  // Path of the report, or of a folder for reports; empty: the paths that CUWARDEN_REPORT of the
  // killed processes names.
  std::string output;
};
// Makes the reports of processes that died without writing one, from their ledgers. Returns 0, or 2
// if one could not be made.
int recover_verb(const RecoverVerb&);

// Options of `cuwarden top`.
struct TopVerb {
  pid_t pid = 0;      // the process to show; 0: all processes that have a ledger
  bool once = false;  // true: print the view once, instead of drawing it again each second
  bool json = false;  // true: print the numbers once, as one JSON object
};
// Shows the live memory of running processes. Returns 2 if the process has no ledger that can be
// read; otherwise ends the command itself, with exit status 0, 2 if the output failed, or by the
// signal that stopped the view.
int top_verb(const TopVerb&);

// Prints if the shim and the CUDA driver can work on this machine and, if a program is given, how
// the program reaches CUDA. `command`: the program and its arguments; may be empty. Returns 0 if
// all is well, 1 if not, 2 if there is no such program.
int doctor_verb(const std::vector<std::string>& command);

}  // namespace cuwarden
