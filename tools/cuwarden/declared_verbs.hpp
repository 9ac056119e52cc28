// The verbs of the command, which are the first words of a command line, with their options.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tools/cuwarden/verbs/verbs.hpp"

namespace cuwarden {

// All verbs. The options get their values when the app parses a command line.
struct Verbs {
  // Declares the verbs and their options. `app` outlives the object.
  explicit Verbs(CLI::App& app);
  Verbs(const Verbs&) = delete;
  Verbs& operator=(const Verbs&) = delete;

  // Returns the verb of this name; null if there is none.
  CLI::App* find(const std::string& name) const;
  // Returns the names of all verbs, as a part of a sentence.
  std::string names() const;

  RunVerb run;
  ReportVerb report;
  SnapshotVerb snapshot;
  RecoverVerb recover;
  TopVerb top;
  std::string topic;  // the verb that `help` is asked about; empty: none
  // The verbs as CLI11 knows them, also in the order in which the help names them.
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
