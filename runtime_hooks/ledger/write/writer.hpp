// Writes the ledger: the file, its header, and its tables. All functions are noexcept, take no
// global lock and call no malloc. Any thread may call them at any time between create() and the end
// of the process. If an allocation, a call stack or a name cannot be stored, Header::reasons says
// so. It does not tell of missing incidents, marks of steps and figures of frameworks.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime_hooks/ledger/format/layout.hpp"
#include "runtime_hooks/ledger/storage/process_time.hpp"

namespace cuwarden::ledger {

class Allocations;
class Devices;
class Frameworks;
class GroupTable;
class GrowingFile;
class Incidents;
class ThreadShards;
class Names;
class PythonTable;
class StackTable;
class Steps;
class Threads;
class Totals;
class VirtualMemory;

// The arguments of Writer::create(), which copies all texts.
struct Creation {
  // Folders in which the ledger's file may be made, tried in order. Null pointers, and folders on
  // an unsuitable file system (such as a network's), are passed over. If no folder works, the
  // ledger is kept in memory.
  std::span<const char* const> folders;
  // Names of the CUDA functions that have hooks in cuwarden, by HookId.
  std::span<const std::string_view> hook_names;
  // Absolute path of the report, with all % fields filled in; /dev/null: no report is written.
  std::string_view report_path;
  // Largest size in bytes of the ledger's file, or of the memory used instead of a file. 0, or a
  // number above default_total_bytes, means default_total_bytes. Limits of the process may be
  // lower.
  std::uint64_t largest_file_bytes = 0;
  std::int32_t pid = 0;  // pid of the recorded process; 0: this process
  // True only in tests: the file's blocks are allocated without MADV_POPULATE_WRITE, as on kernels
  // before Linux 5.14.
  bool without_populate = false;
};

// Writes one ledger: a process's allocation records and other facts, in a memory-mapped file. If no
// file can be made, the ledger is in anonymous memory.
class Writer {
 public:
  // Makes and maps a ledger's file. If no file can be made, uses anonymous memory instead
  // (reason_ledger_in_memory). Returns null only if there is no memory for the ledger or the
  // writer. The writer is never destroyed. A forked child must not use it, since children do not
  // inherit the mapping.
  static Writer* create(const Creation&) noexcept;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Stores the versions of the CUDA driver and runtime, as CUDA gives them (13000 stands for 13.0).
  // A version of 0 or less is not stored: the earlier one stays.
  void set_versions(int driver, int runtime) noexcept;
  // Stores the way in which the process ends, and its exit status (0 to 255). `status_known`: false
  // if the exit status is not known; `exit_status` then means nothing.
  void set_end(EndReason, int exit_status, bool status_known) noexcept;

  GrowingFile& file;        // the ledger's file, or the memory in its stead, with the header
  const ProcessTime& time;  // the clock of all times in the ledger

  // The tables of the ledger, each written by a class with a header of its own below ledger/. They
  // live as long as the writer.

  Allocations& allocations;       // records of allocations, except those of virtual memory
  VirtualMemory& virtual_memory;  // records of virtual memory: handles and mappings
  StackTable& stacks;             // call stacks, each stored once
  PythonTable& python;            // Python functions in the stacks
  GroupTable& groups;  // groups: allocations with the same call stack, function, kind and device
  Totals& totals;      // counters of groups, and of all memory of one kind on one device
  // Devices: readings of their memory, implicit memory, figures of cuwarden's pool, spilled bytes.
  Devices& devices;
  Incidents& incidents;         // refused requests
  Threads& threads;             // threads that made recorded calls
  ThreadShards& thread_shards;  // each thread's own counters, also of its calls of hooks
  Names& names;                 // texts: settings, environment variables, functions without a hook
  Steps& steps;                 // steps that the program has marked
  Frameworks& frameworks;       // figures that frameworks give of their own memory

 private:
  // The objects of which a writer consists: the storage and all tables.
  struct State;
  // Makes the writer's public part, whose references refer to the objects in `state`. The writer
  // itself is a member of `state`.
  explicit Writer(State& state) noexcept;
};

}  // namespace cuwarden::ledger
