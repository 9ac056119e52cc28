// Reads facts about processes from /proc, to find out if the process that a ledger records still
// runs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Facts about a process, from /proc/PID/stat.
struct ProcessStat {
  std::string name;  // the kernel's name of the process (comm): at most 15 letters
  // Start of the process in clock ticks since boot. No two processes have both the same pid and the
  // same start.
  std::uint64_t start_ticks = 0;
  // True for a zombie: all threads have ended, and the parent has not waited yet.
  bool ended = false;
};
// Returns the facts about the process; null if there is no process of this pid.
std::optional<ProcessStat> process_stat(pid_t pid);

// Returns the pids of all processes that /proc shows, of all users.
std::vector<pid_t> all_pids();

// Returns the path of a folder of /proc that shows the process's root folder and mappings: usually
// "/proc/PID". If the main thread has ended, that one shows neither; then returns
// "/proc/PID/task/TID" of another thread.
std::string proc_folder(pid_t pid);

// Returns the pid by which the process knows itself, in its own (innermost) pid namespace; 0 if
// unknown. `pid`: the process's pid in the pid namespace of this command.
std::uint32_t own_pid(pid_t pid);
// Returns the inode number of the process's pid namespace; 0 if unknown or not permitted.
std::uint32_t pid_namespace_of(pid_t pid);

// A mapping of a file whose name is that of a ledger.
struct MappedLedger {
  // Addresses of the mapping, such as "7f0000000000-7f0200000000"; a name in /proc/PID/map_files.
  std::string range;
  std::string path;      // path of the file, below the root folder of the process that maps it
  ino_t inode = 0;       // inode number of the file
  bool deleted = false;  // true if the file has no name any more
};
// The ledgers and the shim (libcuwarden.so) that a process has mapped, from /proc/PID/maps.
struct Mappings {
  int error = 0;                      // an errno if the mappings could not be read; otherwise 0
  std::vector<MappedLedger> ledgers;  // each file once
  bool has_shim = false;              // true if libcuwarden.so is mapped
};
// Reads which ledgers and which shim (libcuwarden.so) the process has mapped.
Mappings mappings_of(pid_t pid);

// Says if a process still runs. `unknown`: the process belongs to a pid namespace that this command
// cannot see.
enum class Life : std::uint8_t { running, ended, unknown };
// Finds out if the process that a ledger records still runs, by the boot, pid, pid namespace and
// start time in the ledger. To be used if the ledger's lock does not tell: not every file system
// has locks. `ProcessView`: what the ledger says of its process. `inode`: inode number of the
// ledger's file. A process whose ledger is a copy counts as running if it may still write the
// original.
Life life_of(const ledger::ProcessView&, ino_t inode);

// Returns the pid of the process that locked the file with this inode number by flock
// (/proc/locks). The process may have ended since, and the lock may live on in its child. Null if
// the file has no lock, or if the process is in a pid namespace that this command cannot see.
std::optional<pid_t> lock_holder(ino_t inode);

}  // namespace cuwarden
