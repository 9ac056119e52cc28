// The verbs of the `cuwarden` command, such as `cuwarden report`: the options of each, and the
// function that runs it. The function returns the command's exit status: 0 for success, 1 if a
// check that the user asked for failed, 2 for wrong usage or input.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reporters/exports/exports.hpp"
#include "reporters/formats/formats.hpp"
#include "reporters/text/text_report.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/reports/leak_checks.hpp"

namespace cuwarden {

// Options of `cuwarden report`.
struct ReportVerb {
  // Paths of reports, of merged reports, of ledgers that killed processes left, or of folders with
  // reports; "-": standard input.
  std::vector<std::string> files;
  TextOptions text;  // options of the text that shows a report, such as the grouping of leaks
  // Format in which a report is shown whole; never null, not owned. If a folder has several
  // reports, each of these reports is shown in one line of text instead.
  const Format* format = &report_formats().front();
  // Checks of the leaks of all reports together. If a folder has a ledger without a report, leaks
  // may be missing, so that a condition fails.
  CheckOptions checks;
  // Path of a file of suppressions, which are added to those of each report; empty: none.
  std::string suppressions;
  // Paths of folders with debug files, which are found by build id.
  std::vector<std::string> symbol_folders;
  bool redact = false;  // true: write a copy without private facts instead of showing the report
  // Path of the redacted copy if `redact` is true; empty: beside the report, with another name;
  // "-": standard output.
  std::string output;
};
// Runs `cuwarden report`: shows reports, or writes redacted copies of them. If a path is that of a
// ledger, first makes its report, a file that stays, and removes the ledger (recover_as_owner()).
// Returns the command's exit status: 0, 1 if a check of leaks failed, or 2 if a file could not be
// read or written. Also 2 if no report has a module that TextOptions::module names.
int report_verb(const ReportVerb&);

// Options of `cuwarden diff`.
struct DiffVerb {
  // Paths of two reports, of merged reports, or of folders with the reports of several processes;
  // "-": standard input.
  std::string before, now;
  // Options of the text. `module`, `top`, `colour`, `full_stacks`, `columns` and `ascii` have an
  // effect.
  TextOptions text;
  CheckOptions checks;  // checks of the leaks in `now`; no baseline is read
  // Path of a file of suppressions for the reports of `before` and of `now`; empty: none.
  std::string suppressions;
  // Paths of folders with debug files, which are found by build id.
  std::vector<std::string> symbol_folders;
};
// Runs `cuwarden diff`: shows which leaks are new, grown, smaller and gone. Returns the command's
// exit status: 0, 1 if a check failed, or 2 if a file could not be read or written. Also 2 if the
// reports are of different programs without a common leak, or if no report has a module that
// TextOptions::module names.
int diff_verb(const DiffVerb&);

// Options of `cuwarden merge`.
struct MergeVerb {
  // Paths of reports or merged reports, or of folders with reports; "-": standard input.
  std::vector<std::string> files;
  std::string output;        // path of the merged report; empty or "-": standard output
  std::string suppressions;  // path of a file of suppressions; empty: none
  // Paths of folders with debug files, which are found by build id.
  std::vector<std::string> symbol_folders;
};
// Runs `cuwarden merge`: writes one merged report of many processes. Each process counts once, by
// the report that was made last. Returns the command's exit status. It is 2 if a report could not
// be read or was given twice, or if the output could not be written; otherwise 0. Reports that
// could be read are merged in any case; without any, no file is written, and the status is 2.
int merge_verb(const MergeVerb&);

// Options of `cuwarden export`.
struct ExportVerb {
  // Paths of reports, of merged reports, or of folders with reports; "-": standard input.
  std::vector<std::string> files;
  // Format of another program in which the reports are written. Not owned; not null when
  // export_verb() is called.
  const ExportFormat* format = nullptr;
  std::string baseline;      // path of a baseline whose leaks are no failures; empty: none
  std::string output;        // path of the file to write; empty or "-": standard output
  std::string suppressions;  // path of a file of suppressions; empty: none
  // Paths of folders with debug files, which are found by build id.
  std::vector<std::string> symbol_folders;
  // True if the export goes to standard output, and to no file.
  bool is_to_standard_output() const { return is_standard_output(output); }
};
// Runs `cuwarden export`: writes reports in a format of other programs. Returns the command's exit
// status, 0 or 2. It is 2 if an input could not be read, if a folder has a ledger without a report,
// or if the output could not be written. If only some reports could be read, a format of leaks
// (WriteLeaks) writes nothing; other formats write those reports.
int export_verb(const ExportVerb&);

// Options of `cuwarden run`.
struct RunVerb {
  std::vector<std::string> command;  // the program to run and its arguments; not empty
  // Environment variables to set for the program: name and value of each, such as CUWARDEN_POOL and
  // "on".
  std::vector<std::pair<std::string, std::string>> settings;
  // Bytes of memory of the simulated GPU on which the program runs; null: it runs on a real GPU.
  std::optional<std::uint64_t> simulated_bytes;
  // True: a page for a browser is written beside each report.
  bool wants_pages = false;
  CheckOptions checks;  // checks of the leaks of all processes of the program together
  // Exit status of the command if a check fails and the program's own status is 0. From 1 to 255;
  // null: 1.
  std::optional<int> failed_check_status;
};
// Runs `cuwarden run`: runs a program with libcuwarden.so preloaded, waits for its end, and shows
// the reports of its processes. Returns the program's exit status, or 128 plus the signal's number
// if a signal killed the program. Returns 127 if the program is not found, and 126 if it cannot be
// run. Returns 2, without running the program, if libcuwarden.so cannot be preloaded, or if the
// program cannot run on the simulated GPU that an option asks for. Does so, too, if the baseline or
// the suppressions cannot be read, or if this command lacks the wanted page. Also returns 2 if the
// program's exit status is 0 and the new baseline could not be written. Returns
// RunVerb::failed_check_status if the program's exit status is 0 and a check of leaks failed.
int run_verb(const RunVerb&);

// Options of `cuwarden snapshot`.
struct SnapshotVerb {
  pid_t pid = 0;  // pid of the running process whose report is made; 0: `ledger` is given
  // Path of the ledger of a running process, or of a folder with ledgers; empty: `pid` is given. A
  // folder needs `exported`.
  std::string ledger;
  // Format in which the report is shown on standard output; not owned; null: it is not shown.
  // `output` must then be empty.
  const Format* format = nullptr;
  // Format for another program (snapshot_export_format()) that is written to `output`; not owned;
  // null: none. If `format` is null, too, the report is written as JSON.
  const ExportFormat* exported = nullptr;
  // Path of the file to write; "-": standard output. A report in JSON may also get a folder; empty:
  // the current folder. If the path is empty, the format `exported` goes to standard output.
  std::string output;
};
// Runs `cuwarden snapshot`: makes the report of a running process from its ledger, without
// disturbing the process. For a folder, writes a file about all of its running processes. Returns
// the command's exit status: 0, or 2 if a process has no ledger that can be read, if there is no
// running process, or if the report could not be written.
int snapshot_verb(const SnapshotVerb&);
// Returns the format of this name if it describes memory, as a snapshot does, and not leaks; null
// if there is none. It is never destroyed.
const ExportFormat* snapshot_export_format(std::string_view name);

// Options of `cuwarden recover`.
struct RecoverVerb {
  // Paths of ledgers, or of folders, which are searched with the folders below them. Empty: the
  // folders of usual_ledger_folders(), without those below.
  std::vector<std::string> locations;
  // Longest time that root spends on one ledger of another user; null: usual_time_for_a_ledger (two
  // minutes).
  std::optional<std::chrono::nanoseconds> longest;
  // Path of the report, or of a folder for reports; "-" is refused. Empty: the path to which each
  // killed process would have written its report (CUWARDEN_REPORT).
  std::string output;
};
// Runs `cuwarden recover`: makes the reports of processes that died without writing one, from their
// ledgers. Returns the command's exit status, 0 or 2. It is 2 if a report could not be made, or if
// one user's ledgers took all the time that the command gives a user. It is 2, too, if a location
// of ledgers or the output is not usable. Ledgers that are in use, or of other users, are no
// failure.
int recover_verb(const RecoverVerb&);

// Options of `cuwarden top`.
struct TopVerb {
  pid_t pid = 0;      // pid of the process to show; 0: all running processes that have a ledger
  bool once = false;  // true: print the view once; false: on a terminal, redraw it each second
  bool json = false;  // true: print the numbers once, as one JSON object, instead of the view
};
// Runs `cuwarden top`: shows the live memory of running processes. Returns 2 if TopVerb::pid names
// a process without a ledger that can be read. Otherwise does not return: ends the command, with
// exit status 0, with 2 if the output failed, or by the signal that stopped the view.
int top_verb(const TopVerb&);

// Runs `cuwarden doctor`: prints if the shim and the CUDA driver can work on this machine and, if a
// program is given, how the program reaches CUDA. `command`: the program and its arguments; empty:
// no program. Returns the command's exit status: 0 if all checks succeed, 1 if one fails, 2 if
// there is no such program.
int doctor_verb(const std::vector<std::string>& command);

}  // namespace cuwarden
