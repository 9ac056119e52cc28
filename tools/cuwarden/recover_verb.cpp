// A line for each ledger that is found: what was made of it.
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "reporters/error_text.hpp"
#include "tools/cuwarden/command_output.hpp"
#include "tools/cuwarden/ledger_search.hpp"
#include "tools/cuwarden/recovery.hpp"
#include "tools/cuwarden/verbs.hpp"

namespace cuwarden {
namespace {

// False after an error line.
bool recover_one(const std::string& ledger) {
  const Recovery made = recover_as_owner(ledger, {});
  const std::string line = ledger + ": " + made.text;
  if (made.outcome == RecoveryOutcome::failed) {
    print_error(line);
    return false;
  }
  print_line(STDOUT_FILENO, line);
  return true;
}

bool is_folder(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

int recover_verb(const RecoverVerb& verb) {
  bool well = true;
  std::size_t ledgers = 0;
  const std::vector<std::string> places =
      verb.places.empty() ? usual_ledger_folders() : verb.places;
  for (const std::string& place : places) {
    if (!is_folder(place) && is_ledger(place)) {
      ++ledgers;
      well = recover_one(place) && well;
      continue;
    }
    int error = 0;
    for (const std::string& ledger : ledgers_in(place, error)) {
      ++ledgers;
      well = recover_one(ledger) && well;
    }
    if (error != 0 && !verb.places.empty()) {
      print_error(place + ": " + error_text(error) +
                  "; give a folder in which ledgers lie, or a ledger");
      well = false;
    }
  }
  if (ledgers == 0 && well) print_line(STDOUT_FILENO, "no ledgers in " + listed(places));
  return well ? 0 : 2;
}

}  // namespace cuwarden
