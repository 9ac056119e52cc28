// The verbs of the command, which are the first words of a command line, with their options.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tools/cuwarden/verbs/verbs.hpp"

namespace cuwarden {

// The verbs of the `cuwarden` command, such as `run`, which the user gives as the first word, and
// their options. The options get their values when CLI11, the library that parses command lines,
// parses one.
struct Verbs {
  // Declares the verbs and their options to CLI11, the library that parses command lines. `app`:
  // CLI11's parser of the whole command line, which must outlive the object.
  explicit Verbs(CLI::App& app);
  Verbs(const Verbs&) = delete;
  Verbs& operator=(const Verbs&) = delete;

  // Sets the colours, the columns and the characters that suit standard output in the options of
  // `cuwarden report` and `cuwarden diff`. To be called after the command line was parsed, since
  // the option --color counts.
  void suit_output();
  // Returns CLI11's parser of the verb with this name, which CLI11 owns; null if there is no such
  // verb.
  CLI::App* find(const std::string& name) const;
  // Returns the names of all verbs in one text, such as "run, report and version".
  std::string names() const;

  RunVerb run;            // options of `cuwarden run`
  ReportVerb report;      // options of `cuwarden report`
  DiffVerb diff;          // options of `cuwarden diff`
  MergeVerb merge;        // options of `cuwarden merge`
  ExportVerb exported;    // options of `cuwarden export`
  SnapshotVerb snapshot;  // options of `cuwarden snapshot`
  RecoverVerb recover;    // options of `cuwarden recover`
  TopVerb top;            // options of `cuwarden top`
  std::string topic;  // name of the verb whose help the user asks for (`help VERB`); empty: none
  CLI::App* const run_app;       // CLI11's parser of `cuwarden run`; owned by CLI11
  CLI::App* const report_app;    // CLI11's parser of `cuwarden report`; owned by CLI11
  CLI::App* const diff_app;      // CLI11's parser of `cuwarden diff`; owned by CLI11
  CLI::App* const merge_app;     // CLI11's parser of `cuwarden merge`; owned by CLI11
  CLI::App* const export_app;    // CLI11's parser of `cuwarden export`; owned by CLI11
  CLI::App* const snapshot_app;  // CLI11's parser of `cuwarden snapshot`; owned by CLI11
  CLI::App* const recover_app;   // CLI11's parser of `cuwarden recover`; owned by CLI11
  CLI::App* const top_app;       // CLI11's parser of `cuwarden top`; owned by CLI11
  CLI::App* const doctor_app;    // CLI11's parser of `cuwarden doctor`; owned by CLI11
  CLI::App* const help_app;      // CLI11's parser of `cuwarden help`; owned by CLI11
  CLI::App* const version_app;   // CLI11's parser of `cuwarden version`; owned by CLI11
  // CLI11's parsers of all verbs, in the order in which the help names the verbs; owned by CLI11.
  const std::vector<CLI::App*> all{run_app,    report_app,   diff_app,    merge_app,
                                   export_app, snapshot_app, recover_app, top_app,
                                   doctor_app, help_app,     version_app};
};

}  // namespace cuwarden
