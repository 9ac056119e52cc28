// The verbs of the command, which are the first words of a command line, with their options.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tools/cuwarden/verbs/verbs.hpp"

namespace cuwarden {

// The verbs of the `cuwarden` command, such as `run`: what the user can give as the first word. The
// options of a verb get their values when CLI11 parses a command line.
struct Verbs {
  // Declares the verbs and their options. `app`: CLI11's parser of the command line, which must
  // outlive the object.
  explicit Verbs(CLI::App& app);
  Verbs(const Verbs&) = delete;
  Verbs& operator=(const Verbs&) = delete;

  // Returns CLI11's parser of the verb of this name; null if there is no such verb.
  CLI::App* find(const std::string& name) const;
  // Returns the names of all verbs in the form "run, report and version", for a sentence.
  std::string names() const;

  RunVerb run;
  ReportVerb report;
  SnapshotVerb snapshot;
  RecoverVerb recover;
  TopVerb top;
  std::string topic;  // the verb that `help` is asked about; empty: none
  // CLI11's parser of each verb, in the order in which the help names the verbs.
  CLI::App* const run_app;
  CLI::App* const report_app;
  CLI::App* const snapshot_app;
  CLI::App* const recover_app;
  CLI::App* const top_app;
  CLI::App* const doctor_app;
  CLI::App* const help_app;
  CLI::App* const version_app;
  const std::vector<CLI::App*> all{run_app, report_app, snapshot_app, recover_app,
                                   top_app, doctor_app, help_app,     version_app};
};

}  // namespace cuwarden
