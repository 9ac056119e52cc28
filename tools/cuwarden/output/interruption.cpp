#include "tools/cuwarden/output/interruption.hpp"

#include <signal.h>

#include "reporters/files/unfinished_files.hpp"
#include "tools/cuwarden/output/progress.hpp"

namespace cuwarden {
namespace {

void end_cleanly(int number) {
  remove_unfinished_files();
  hide_progress();
  // The signal is blocked in its handler. It ends the command as soon as the handler returns.
  signal(number, SIG_DFL);
  raise(number);
}

}  // namespace

void clean_up_when_interrupted() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction present {};
    if (sigaction(number, nullptr, &present) != 0 || present.sa_handler != SIG_DFL) continue;
    struct sigaction action {};
    action.sa_handler = end_cleanly;
    // One of these signals does not interrupt the handler of another.
    sigfillset(&action.sa_mask);
    sigaction(number, &action, nullptr);
  }
}

}  // namespace cuwarden
