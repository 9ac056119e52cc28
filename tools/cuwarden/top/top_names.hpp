// Names the code that makes allocations, for the view of `cuwarden top`. Reading debug information
// can take seconds, so another thread does it. Until it has a name, the view shows a library and an
// offset in it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/cuwarden/ledgers/ledger_file.hpp"

namespace cuwarden {

// The names of a call site, the code that makes a group's allocations. Texts are printable.
struct CallSiteName {
  // `api`: the CUDA function that was called, such as cudaMalloc. `where`: the frame that a person
  // would name (users_frame()), as function, file and line ("f  a.cpp:7"). If file and line are
  // unknown: library and offset in bytes ("liba.so+0x1f0"), or the address of code in no library.
  // "no stack was recorded": there is no such frame. Both texts are empty if no name was asked for.
  std::string api, where;
  // The frame of `where` in the words of reports (short_location_text()), such as "a.cpp:7 in f".
  // If there is no such frame, the text of `where`; empty if no name was asked for.
  std::string location{};
  // File name of the library or the program that has the code. For a Python function, name of its
  // source file. Empty: unknown.
  std::string module{};
};

// A frame of a whole call stack. Texts are printable.
struct StackLine {
  // `location`: the frame as reports name it, such as "/home/u/a.cpp:7 in f". `short_location`: the
  // same without the folder, such as "a.cpp:7 in f".
  std::string location, short_location;
  // Name of the library to which the code belongs, such as "PyTorch"; empty: the program's own.
  std::string library;
  bool is_users = false;  // true for the frame that a person would name for the allocations
};
// A whole call stack, innermost frame first.
using StackLines = std::vector<StackLine>;

// The names of the call sites of one process, by group. A group is all allocations with one call
// stack, function, kind of memory and device; its id is its row in the ledger. Any thread may call
// the functions.
class CallSiteNames {
 public:
  // Starts the thread that reads debug information. `LedgerFile`: the ledger of the process; not
  // null. The thread keeps it open until the thread ends. Throws std::system_error if no thread can
  // be started.
  explicit CallSiteNames(std::shared_ptr<const LedgerFile>);
  CallSiteNames(const CallSiteNames&) = delete;
  CallSiteNames& operator=(const CallSiteNames&) = delete;
  // Tells the thread that reads debug information to end, and does not wait for it: the thread
  // first finishes the names that it is looking up. The thread and the object share the ownership
  // of all that the thread uses.
  ~CallSiteNames();

  // Returns the best name known so far for the code that makes the group's allocations. `group`:
  // the group's row in the ledger. The texts are empty until want() was called for the group.
  CallSiteName get(std::uint32_t group) const;
  // Asks for the names of groups. `groups`: their rows in the ledger. Finds library and offset of
  // each call site before it returns, so that get() returns them; the object's thread then looks up
  // functions and lines. Groups that were asked for before are not looked up again.
  void want(const std::vector<std::uint32_t>& groups);
  // Asks for the names of groups, and returns at once; the object's thread looks up functions and
  // lines. `groups`: the groups' rows in the ledger. Until a group is looked up, get() returns
  // empty texts for it, or library and offset if want() was called before. Groups that were asked
  // for before are not looked up again.
  void want_later(const std::vector<std::uint32_t>& groups);
  // Returns the whole call stack of the group; null until the object's thread has looked it up, for
  // which the first call asks. Empty if no stack was recorded, or if memory did not suffice.
  // `group`: the group's row in the ledger.
  std::optional<StackLines> whole_stack(std::uint32_t group);
  // Returns a number that rises each time that names or call stacks become known.
  std::uint64_t revision() const;
  // True if the object's thread has looked up functions and lines of all groups for which
  // it was asked, found or not.
  bool are_known() const;
  // Waits until the object's thread has looked up functions and lines of all groups that were given
  // to want() or want_later(), found or not.
  void wait() const;

 private:
  // State that the object and its thread share; the thread may outlive the object.
  struct Shared;
  // Runs in the object's own thread: looks up the functions of call sites for which names were
  // asked, until the CallSiteNames object is destroyed.
  static void look_up(std::shared_ptr<Shared>);
  std::shared_ptr<Shared> shared_;  // state that the object shares with its thread; never null
};

}  // namespace cuwarden
