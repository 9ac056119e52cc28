// What /proc says about processes, and whether the process of a ledger still lives.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

struct ProcessStat {
  std::string name;               // as the kernel keeps it: at most 15 letters
  std::uint64_t start_ticks = 0;  // a pid is used again; the pair (pid, start) is not
  bool ended = false;             // all of its threads: only its parent has not asked yet
};
std::optional<ProcessStat> process_stat(pid_t pid);  // null: no such process

std::vector<pid_t> all_pids();

// "/proc/PID", or that of a thread that still runs where the main one has ended.
std::string proc_folder(pid_t pid);

// The pid by which the process knows itself, in the innermost of its pid namespaces. 0: unknown.
std::uint32_t own_pid(pid_t pid);
std::uint32_t pid_namespace_of(pid_t pid);  // 0: unknown, or not ours to know

// A mapping of a file whose name is that of a ledger.
struct MappedLedger {
  std::string range;  // "7f0000000000-7f0200000000", its name in /proc/PID/map_files
  std::string path;   // as the process sees it
  ino_t inode = 0;
  bool deleted = false;
};
struct Mappings {
  int error = 0;  // errno where they could not be read
  std::vector<MappedLedger> ledgers;
  bool has_shim = false;  // libcuwarden.so is mapped
};
Mappings mappings_of(pid_t pid);

enum class Life : std::uint8_t { running, ended, unknown };
// For a ledger without a lock (Process::lock_held), by what it says of its process. `inode`: the
// ledger's. Unknown: the process belongs to a pid namespace that cannot be seen from here.
Life life_of(const ledger::ProcessView&, ino_t inode);

// The process that took the flock of a file, which may have ended since and left it to a child.
// None: nobody, or a process of another pid namespace.
std::optional<pid_t> lock_holder(ino_t inode);

}  // namespace cuwarden
