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

// Facts about one process, from /proc/PID/stat.
struct ProcessStat {
  std::string name;  // the kernel's name of the process (comm): at most 15 letters
  // Start of the process in clock ticks since boot. No two processes have both the same pid and the
  // same start.
  std::uint64_t start_ticks = 0;
  // True for a zombie: all threads have ended, and the parent has not waited yet.
  bool ended = false;
};
// Returns the facts that /proc/PID/stat has about a process; null if there is no process with this
// pid. `pid`: in the pid namespace of this command.
std::optional<ProcessStat> process_stat(pid_t pid);

// Returns the name of the user as whom the process runs, or the uid in digits if the user has no
// name; empty if there is no such process. `pid`: in the pid namespace of this command.
std::string user_of(pid_t pid);

// Returns the pids of all processes that /proc lists, of all users. Empty if /proc cannot be read.
std::vector<pid_t> all_pids();

// Returns the path of a folder of /proc in which the files `root` and `maps` of the process can be
// read: usually "/proc/PID". If the main thread has ended, they are empty there; then returns
// "/proc/PID/task/TID" of another thread. Returns "/proc/PID" also if there is no such process.
std::string proc_folder(pid_t pid);

// Returns the pid by which the process knows itself, in its own (innermost) pid namespace; 0 if
// unknown. `pid`: the process's pid in the pid namespace of this command.
std::uint32_t own_pid(pid_t pid);
// Returns the inode number of the process's pid namespace; 0 if unknown or not permitted.
std::uint32_t pid_namespace_of(pid_t pid);

// A ledger's file that a process has mapped, recognised by the file's name.
struct MappedLedger {
  // Addresses of the first mapping of the ledger's file, such as "7f0000000000-7f0200000000": the
  // name of its link in /proc/PID/map_files.
  std::string range;
  std::string path;      // path of the ledger, below the root folder of the process that maps it
  ino_t inode = 0;       // inode number of the ledger's file
  bool deleted = false;  // true if the ledger's file was removed from its folder
};
// The ledgers and the shim (libcuwarden.so) that a process has mapped, from /proc/PID/maps.
struct Mappings {
  int error = 0;                      // an errno if the mappings could not be read; otherwise 0
  std::vector<MappedLedger> ledgers;  // ledgers that the process has mapped, each file once
  bool has_shim = false;              // true if the process has mapped libcuwarden.so
};
// Returns the ledgers (files with allocation records) that the process has mapped, and whether it
// has mapped the shim (libcuwarden.so). `pid`: in the pid namespace of this command.
Mappings mappings_of(pid_t pid);

// True if the pid in a ledger means the same process for this command: the recorded process has
// this command's pid namespace. True, too, if one of the two namespaces is unknown.
bool pid_counts_here(const ledger::ProcessView&);

// Says if a recorded process still runs. `unknown`: the process belongs to a pid namespace whose
// processes /proc does not list for this command.
enum class Life : std::uint8_t { running, ended, unknown };
// Finds out if the process that a ledger records still runs, by the boot, pid, pid namespace and
// start time in the ledger. Used if the lock on the ledger does not tell this, since not every file
// system has locks. `ProcessView`: the ledger's facts about its process. `inode`: inode number of
// the ledger's file. A living process counts as running only if it has this file mapped, or if its
// mappings cannot be read. If the file is a copy, a living process always counts, since it may
// still write to the original.
Life life_of(const ledger::ProcessView&, ino_t inode);

// Returns the pid of the process that took the flock lock on the file with this inode number, from
// /proc/locks. That process may have ended, because a forked child keeps the lock. Returns null if
// the file has no lock, or if the process is in a pid namespace that /proc does not list here. File
// systems are not compared: a locked file of another one may have the same inode number.
std::optional<pid_t> lock_holder(ino_t inode);

}  // namespace cuwarden
