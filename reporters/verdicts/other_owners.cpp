// Verdicts about a device that other processes hold. The advice depends on the process. One that
// NVML lists and that runs ends some day. A zombie has no memory itself, and one that is stuck in
// the kernel may never end. A process that only has the device's file open may hold no memory.
#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "reporters/verdicts/predicates.hpp"
#include "reporters/words/process_words.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden::verdicts {
namespace {

using ledger::Fact;
using ledger::RunState;
using ledger::SeenBy;

// Clause for a list with pids of another pid namespace.
constexpr std::string_view no_match = "NVML's list cannot be matched with the processes here";

// Returns the proof that others hold most of the device; null if they do not. `unlisted`: bytes of
// others that NVML does not list, if they are more than those of the processes that it lists;
// otherwise null.
std::optional<OthersProof> held_by_others(const Shortage& shortage, model::Figure unlisted) {
  if (!shortage.lacks_memory() || !shortage.is_the_most(shortage.others()) ||
      unlisted.has_value() != (shortage.listed() < shortage.unlisted()))
    return std::nullopt;
  return OthersProof{
      .other_processes_bytes = shortage.fact(Fact::other_processes_bytes),
      .opened_bytes = shortage.opened() == 0 ? std::nullopt : model::Figure(shortage.opened()),
      .own_bytes = shortage.own(),
      .unlisted_bytes = unlisted,
      .free_bytes = shortage.free_bytes(),
      .requested_bytes = shortage.requested_bytes()};
}

// Processes of which the advice says the same.
struct Group {
  std::vector<std::string> names;  // words for each process that is named
  std::size_t unnamed = 0;         // number of further processes
  std::size_t of_other_users = 0;  // number of those named that other users have
  std::size_t size() const { return names.size() + unnamed; }
};

// Returns the processes that were found in the given way and were in one of the given states.
Group group_of(const Shortage& shortage, SeenBy seen_by, std::initializer_list<RunState> states) {
  const ledger::NamedProcesses& others = shortage.given().others;
  Group group;
  for (const ledger::OtherProcess& process : others.all()) {
    if (process.seen_by != seen_by || std::ranges::find(states, process.run_state) == states.end())
      continue;
    group.names.push_back(process_words(process.pid, process.program, process.user));
    if (process.is_of_another_user) ++group.of_other_users;
  }
  for (const RunState state : states) group.unnamed += others.unnamed(seen_by, state);
  return group;
}

// Returns a text such as "a, b and c" or "a, b, c and 2 others". Empty for no processes.
std::string words_of(const Group& group) {
  std::vector<std::string> parts = group.names;
  if (group.unnamed != 0) {
    std::string kind = parts.empty() ? "process" : "other";
    if (group.unnamed != 1) kind += parts.empty() ? "es" : "s";
    parts.push_back(std::to_string(group.unnamed) + " " + kind);
  }
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text;
}

// Returns the words that follow "wait", such as " (CUWARDEN_WAIT=10m lets requests wait)"; empty if
// requests wait already.
std::string how_to_wait(const Shortage& shortage) {
  const std::string wants = shortage.waiting_wants();
  return wants.empty() ? wants : " (" + wants + " lets requests wait)";
}

// Returns how the processes are ended. A user may end only processes of their own.
std::string how_to_end(const Group& group) {
  const bool one = group.size() == 1;
  if (group.of_other_users == 0 && group.unnamed == 0) return one ? "end it" : "end them";
  if (group.of_other_users == group.size())
    return one ? "ask its user to end it" : "ask their users to end them";
  return "end those that are yours, ask the users of the others to end them";
}

// Returns a clause for processes that were killed and do not end.
std::string advice_about_stuck(const Group& stuck) {
  const bool one = stuck.size() == 1;
  return words_of(stuck) + (one ? " was killed but stays" : " were killed but stay") +
         " in the kernel (state D), where no signal ends a process, so that waiting may not help: "
         "use another device";
}

// Adds a clause to advice.
void add(std::string& advice, const std::string& clause) {
  advice += (advice.empty() ? "" : "; ") + clause;
}

// Returns what to do about the processes that have the device's file open and that NVML does not
// list. They may hold no memory, so the user is not told to end them. Empty if there are none.
std::string advice_about_openers(const Shortage& shortage) {
  const Group openers = group_of(shortage, SeenBy::device_file,
                                 {RunState::alive, RunState::unknown, RunState::zombie});
  const Group stuck = group_of(shortage, SeenBy::device_file, {RunState::stuck});
  std::string advice;
  if (openers.size() == 1)
    add(advice, words_of(openers) +
                    " has the device's file open and may hold the memory: look at what it does, or "
                    "use another device");
  else if (openers.size() != 0)
    add(advice, words_of(openers) +
                    " have the device's file open, and one of these may hold the memory: look at "
                    "what they do, or use another device");
  if (stuck.size() != 0) add(advice, advice_about_stuck(stuck));
  return advice;
}

// Returns what to do about the processes that NVML lists: a clause for those that live, for zombies
// and for those that are stuck. Empty if there are no such processes.
std::string advice_about_listed(const Shortage& shortage) {
  const Group living = group_of(shortage, SeenBy::nvml, {RunState::alive, RunState::unknown});
  const Group zombies = group_of(shortage, SeenBy::nvml, {RunState::zombie});
  const Group stuck = group_of(shortage, SeenBy::nvml, {RunState::stuck});
  std::string advice;
  if (living.size() != 0)
    add(advice, "wait until " + words_of(living) + (living.size() == 1 ? " ends" : " end") +
                    how_to_wait(shortage) + ", " + how_to_end(living) + ", or use another device");
  if (zombies.size() != 0) {
    const bool one = zombies.size() == 1;
    add(advice, words_of(zombies) +
                    (one ? " has ended, and its own memory is gone, but a process that it started"
                         : " have ended, and their own memory is gone, but a process that they "
                           "started") +
                    " and that has the device's file open may keep memory");
    const std::string openers = advice_about_openers(shortage);
    if (openers.empty())
      advice += ": look for such a process, or use another device";
    else
      add(advice, openers);
  }
  if (stuck.size() != 0) add(advice, advice_about_stuck(stuck));
  return advice;
}

}  // namespace

std::optional<Finding<OthersProof>> held_by_other_processes(const Shortage& shortage) {
  const auto proof = held_by_others(shortage, std::nullopt);
  if (!proof) return std::nullopt;
  const std::string about = advice_about_listed(shortage);
  return Finding{*proof, "other processes hold " + human_bytes(shortage.listed()) +
                             " of this device: " +
                             (!about.empty() ? about
                                             : "wait for them" + how_to_wait(shortage) +
                                                   ", stop them, or use another device")};
}

std::optional<Finding<OthersProof>> held_by_unlisted_owner(const Shortage& shortage) {
  const auto proof = held_by_others(shortage, shortage.unlisted());
  if (!proof) return std::nullopt;
  const std::string bytes = human_bytes(shortage.unlisted());
  const bool unmatched = shortage.incident().fact(Fact::unmatched_processes).has_value();
  const std::string about = advice_about_openers(shortage);
  if (!about.empty())
    return Finding{*proof, bytes +
                               (unmatched ? " have other owners, and " + std::string(no_match)
                                          : " belong to no process that NVML lists") +
                               "; " + about};
  if (is_integrated(shortage.incident()))
    return Finding{*proof,
                   "the device shares its memory with the host, where programs and the "
                   "kernel hold " +
                       bytes + ": end programs that take much memory"};
  const std::string wants = shortage.waiting_wants();
  return Finding{*proof, bytes +
                             (unmatched ? " have other owners, and " + std::string(no_match)
                                        : " belong to no process that is visible here") +
                             ", so that waiting may not help: ask the administrator to run "
                             "nvidia-smi on the host, and to "
                             "look for processes of other containers or pid namespaces, and for "
                             "ones that were killed" +
                             (wants.empty() ? "" : "; " + wants + " lets requests wait for them")};
}

}  // namespace cuwarden::verdicts
