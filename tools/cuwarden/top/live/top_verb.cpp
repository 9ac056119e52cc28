// `cuwarden top`: shows the ledgers that processes write in any case, and does not disturb the
// processes.
#include <signal.h>
#include <unistd.h>

#include <utility>

#include "tools/cuwarden/ledgers/ledger_search.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/output/terminal.hpp"
#include "tools/cuwarden/top/live/live_loop.hpp"
#include "tools/cuwarden/top/once.hpp"
#include "tools/cuwarden/verbs/verbs.hpp"

namespace cuwarden {
namespace {

// Ends the command by the signal itself, so that its parent sees the signal in the wait status.
void end_by(int number) {
  signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  raise(number);
}

}  // namespace

int top_verb(const TopVerb& verb) {
  LiveLedger live;
  if (verb.pid != 0) {
    live = ledger_of(verb.pid);
    if (!live.file) {
      print_error(live.error);
      return 2;
    }
  }
  int ended_by = 0;
  if (auto terminal = verb.once || verb.json ? nullptr : Terminal::take()) {
    ended_by = show_live(*terminal, verb.pid, std::move(live.file));
  } else if (verb.pid != 0) {
    print_process_once(verb.pid, std::move(live.file), verb.json);
  } else {
    print_processes_once(verb.json);
  }
  if (ended_by != 0) end_by(ended_by);
  // Another thread may still be looking up names. _exit() runs no destructor of objects that it
  // uses.
  _exit(finish_output(0));
}

}  // namespace cuwarden
