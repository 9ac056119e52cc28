// Verdicts about a device that other processes hold. The advice depends on the process: one that
// runs ends some day, a zombie needs its parent, and one that is stuck in the kernel may never end.
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

// Returns the proof that others hold most of the device; null if they do not. `unlisted`: bytes of
// others that NVML does not list. It is null exactly if the processes that NVML lists hold no less.
std::optional<OthersProof> held_by_others(const Shortage& shortage, model::Figure unlisted) {
  if (!shortage.lacks_memory() || !shortage.is_the_most(shortage.others()) ||
      unlisted.has_value() != (shortage.listed() < shortage.unlisted()))
    return std::nullopt;
  return OthersProof{shortage.fact(Fact::other_processes_bytes),
                     shortage.opened() == 0 ? std::nullopt : model::Figure(shortage.opened()),
                     shortage.own(),
                     unlisted,
                     shortage.free_bytes(),
                     shortage.requested_bytes()};
}

std::string words_of(const ledger::OtherProcess& process) {
  return process_words(process.pid, process.program, process.user);
}

// Returns a text such as "a, b and c". Empty for no parts.
std::string listed_words(const std::vector<std::string>& parts) {
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

// Returns what to do about the processes that were found in the given way: a clause for those that
// live, for each zombie, and for those that are stuck. Empty if there are no such processes.
std::string advice_about(const Shortage& shortage, SeenBy seen_by) {
  std::vector<std::string> living, stuck;
  std::string zombies;
  for (const ledger::OtherProcess& process : shortage.given().others.all()) {
    if (process.seen_by != seen_by) continue;
    switch (process.run_state) {
      case RunState::zombie:
        zombies += (zombies.empty() ? "" : "; ") + words_of(process) +
                   " has ended, but its parent" +
                   (process.parent == 0
                        ? std::string()
                        : ", " + process_words(process.parent, process.parent_program, {}) + ",") +
                   " has not reaped it: have the parent reap it, or end the parent";
        break;
      case RunState::stuck:
        stuck.push_back(words_of(process));
        break;
      case RunState::alive:
      case RunState::unknown:
        living.push_back(words_of(process));
    }
  }
  std::string advice;
  const auto add = [&](const std::string& clause) {
    if (!clause.empty()) advice += (advice.empty() ? "" : "; ") + clause;
  };
  if (!living.empty()) {
    const bool one = living.size() == 1;
    add("wait until " + listed_words(living) + (one ? " ends" : " end") + how_to_wait(shortage) +
        (one ? ", end it" : ", end them") + ", or use another device");
  }
  add(zombies);
  if (!stuck.empty())
    add(listed_words(stuck) + (stuck.size() == 1 ? " is" : " are") +
        " stuck in the kernel (state D), where no signal ends a process, so that waiting may not "
        "help: use another device, or ask the administrator to reset this one");
  return advice;
}

}  // namespace

std::optional<Finding<OthersProof>> held_by_other_processes(const Shortage& shortage) {
  const auto proof = held_by_others(shortage, std::nullopt);
  if (!proof) return std::nullopt;
  const std::string about = advice_about(shortage, SeenBy::nvml);
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
  const std::string about = advice_about(shortage, SeenBy::device_file);
  if (!about.empty())
    return Finding{*proof, bytes +
                               " belong to no process that NVML lists, but there are processes "
                               "with the device's file open: " +
                               about};
  if (is_integrated(shortage.incident()))
    return Finding{*proof,
                   "the device shares its memory with the host, where programs and the "
                   "kernel hold " +
                       bytes + ": end programs that take much memory"};
  const std::string wants = shortage.waiting_wants();
  return Finding{*proof, bytes +
                             " belong to no process that is visible here, so that waiting may not "
                             "help: ask the administrator to run nvidia-smi on the host, and to "
                             "look for processes of other containers or pid namespaces, and for "
                             "ones that were killed" +
                             (wants.empty() ? "" : "; " + wants + " lets requests wait for them")};
}

}  // namespace cuwarden::verdicts
