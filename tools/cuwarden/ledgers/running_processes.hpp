// Facts about processes from /proc, in order to know if the process of a ledger still lives.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

struct ProcessStat {
  std::string name;               // the kernel's name of the process: at most 15 letters
  std::uint64_t start_ticks = 0;  // start in clock ticks since boot; pid and start are unique
  bool ended = false;  // true if all threads have ended and the parent has not waited yet
};
std::optional<ProcessStat> process_stat(pid_t pid);  // null if there is no such process

// Returns the pids of all processes that /proc shows.
std::vector<pid_t> all_pids();

// Returns "/proc/PID", or the folder of a running thread if the main thread has ended.
std::string proc_folder(pid_t pid);

// Returns the pid that the process has in the innermost of its pid namespaces; 0 if unknown.
std::uint32_t own_pid(pid_t pid);
// Returns the inode number of the process's pid namespace; 0 if unknown or not permitted.
std::uint32_t pid_namespace_of(pid_t pid);

// A mapping of a file whose name is that of a ledger.
struct MappedLedger {
  std::string range;  // "7f0000000000-7f0200000000", its name in /proc/PID/map_files
  std::string path;   // path of the file as the process sees it
  ino_t inode = 0;
  bool deleted = false;
};
struct Mappings {
  int error = 0;  // an errno if the mappings could not be read, or 0
  std::vector<MappedLedger> ledgers;
  bool has_shim = false;  // true if libcuwarden.so is mapped
};
Mappings mappings_of(pid_t pid);

enum class Life : std::uint8_t { running, ended, unknown };
// Finds out if the process of a ledger lives, from what the ledger says about its process. For
// ledgers that are not locked (Process::lock_held). `inode`: that of the ledger. Returns
// Life::unknown if the process belongs to a pid namespace that cannot be seen from here.
Life life_of(const ledger::ProcessView&, ino_t inode);

// Returns the process that took the flock of a file. It may have ended since and have left the lock
// to a child. Null if there is no lock, or if the process is of another pid namespace.
std::optional<pid_t> lock_holder(ino_t inode);

}  // namespace cuwarden
