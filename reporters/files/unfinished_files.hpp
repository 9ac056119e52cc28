// Lists the files that this process is writing, so that a command which a signal ends can remove
// them first.
#pragma once

#include <string>

#include "runtime_hooks/core/signal_mask.hpp"

namespace cuwarden {

// Blocks the signals of the calling thread while the object lives, except own_signals (such as
// SIGSEGV). The caller makes a file and puts its path on the list of unfinished files meanwhile. No
// signal can come between the two steps. So the signal's handler neither leaves the file behind nor
// removes another process's file at this path. For the command only: a program may forbid the shim
// the system call that blocks signals.
class NoInterruption {
 public:
  // Blocks the signals, and stores the set of signals that the thread blocked before.
  NoInterruption() noexcept : before_(change_blocked_signals(SIG_BLOCK, ~own_signals)) {}
  NoInterruption(const NoInterruption&) = delete;
  NoInterruption& operator=(const NoInterruption&) = delete;
  // Restores the set of signals that the thread blocked before the object was made.
  ~NoInterruption() { change_blocked_signals(SIG_SETMASK, before_); }

 private:
  const SignalSet before_;  // signals that the thread blocked before the object was made
};

// A file that is of no use until it is whole. It is on the list of unfinished files while the
// object lives. The list has room for eight files; further ones are not listed. Objects may be made
// by several threads.
class UnfinishedFile {
 public:
  // Puts the file at the path on the list of unfinished files. This process has made the file.
  explicit UnfinishedFile(std::string path) noexcept;
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;
  // Takes the file off the list of unfinished files, and leaves the file as it is.
  ~UnfinishedFile();

 private:
  const std::string path_;  // path of the unfinished file; the list points to this text
  // Index of the file's slot in the list of unfinished files, from 0; -1: the file is not listed.
  int slot_ = -1;
};

// Removes the files on the list of unfinished files. To be called by a handler of a signal that
// ends the process, since the process's threads may be writing or renaming these files. Failures
// are ignored.
void remove_unfinished_files() noexcept;

}  // namespace cuwarden
