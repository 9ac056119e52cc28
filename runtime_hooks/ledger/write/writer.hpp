// The ledger as it is written: the file, its header, and the tables that facts go to. All of their
// functions are noexcept, take no global lock, call no malloc, and may be called from any thread at
// any time between create() and the end of the process. Facts that cannot be stored are counted and
// said in Header::reasons; no function reports a failure otherwise.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime_hooks/ledger/format/layout.hpp"
#include "runtime_hooks/ledger/storage/process_time.hpp"

namespace cuwarden::ledger {

class Allocations;
class Devices;
class GroupTable;
class Incidents;
class ThreadShards;
class Names;
class StackTable;
class Threads;
class Totals;
class VirtualMemory;

// The choices with which a ledger is made.
struct Creation {
  // Folders to try in order: the first one that works and is on a local file system is used. If
  // there is none, the ledger is kept in memory.
  std::span<const char* const> folders;
  // names of the hooks; row i of the hooks table is hook i
  std::span<const std::string_view> hook_names;
  std::string_view report_path;  // absolute path of the report, with all % fields filled in
  // largest size of the file; 0: only the process's limits count
  std::uint64_t largest_file_bytes = 0;
  std::int32_t pid = 0;           // pid of the recorded process; 0: this process
  bool without_populate = false;  // fill the file as on kernels before Linux 5.14
};

class Writer {
 public:
  // Makes and maps the file, or uses anonymous memory (reason_ledger_in_memory). Returns null only
  // if there is not even memory. The object lives in its own memory and is never destroyed. A
  // forked child must not use it, since the mapping is not inherited.
  static Writer* create(const Creation&) noexcept;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Returns the file's path; empty if the ledger is in memory only, or if the file was removed.
  std::string_view path() const noexcept;
  // Removes the file's name, once the report is whole. The mapping stays usable.
  void remove_file() noexcept;
  // Returns the whole mapping, for a reader in this process, including parts that are in memory
  // only. Pages of rows that were not handed out may be inaccessible.
  std::span<const std::byte> bytes() const noexcept;

  Header& header() noexcept;
  void set_versions(int driver, int runtime) noexcept;  // 13000 stands for 13.0; 0 changes nothing
  void set_end(EndReason, int exit_status, bool status_known) noexcept;
  void add_reason(Reason) noexcept;
  void add_shim_time(std::uint64_t ns) noexcept;
  // Makes room in each table for as many rows as it has, so that they need no further system call.
  void make_room_ahead() noexcept;

  const ProcessTime& time;

  // The tables. Each has its header in this folder; the header of class ThreadShards is in
  // storage/.
  Allocations& allocations;
  VirtualMemory& virtual_memory;
  StackTable& stacks;
  GroupTable& groups;
  Totals& totals;
  Devices& devices;
  Incidents& incidents;
  Threads& threads;
  ThreadShards& thread_shards;  // counters of calls
  Names& names;

 private:
  struct State;
  explicit Writer(State& state) noexcept;
  State& state_;
};

}  // namespace cuwarden::ledger
