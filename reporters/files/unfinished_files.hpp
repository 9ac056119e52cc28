// Lists the files that this process is writing, so that a command which a signal ends can remove
// them first.
#pragma once

#include <string>

#include "runtime_hooks/core/signal_mask.hpp"

namespace cuwarden {

// Holds back the signals of the calling thread while the object lives, apart from own_signals. A
// file that is made and listed meanwhile is never removed before it is this process's own, and
// never left behind. For the command only: a program may forbid the shim the system call.
class NoInterruption {
 public:
  NoInterruption() noexcept : before_(change_blocked_signals(SIG_BLOCK, ~own_signals)) {}
  NoInterruption(const NoInterruption&) = delete;
  NoInterruption& operator=(const NoInterruption&) = delete;
  ~NoInterruption() { change_blocked_signals(SIG_SETMASK, before_); }

 private:
  const SignalSet before_;  // signals that the thread blocked before
};

// A file of no use until it is whole, which is on the list while the object lives. The list has
// room for a few files; those beyond are not listed. Objects may be made by several threads.
class UnfinishedFile {
 public:
  // Lists the file at the path, which this process has made.
  explicit UnfinishedFile(std::string path) noexcept;
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;
  // Takes the file off the list, and leaves it as it is.
  ~UnfinishedFile();

 private:
  const std::string path_;  // path of the file
  int slot_ = -1;           // index of the file's slot of the list; -1: it is not listed
};

// Removes the files on the list. To be called by a handler of a signal that ends the process: a
// thread of it may be writing or renaming one of them. Failures are ignored.
void remove_unfinished_files() noexcept;

}  // namespace cuwarden
