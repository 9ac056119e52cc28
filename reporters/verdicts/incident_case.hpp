// A refused request, and the parts of which the used memory of its device consisted at the refusal.
#pragma once

#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reporters/owners/library_reserves.hpp"
#include "reporters/verdicts/account.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// The value of CUDA_ERROR_OUT_OF_MEMORY, a CUresult. Defined here because cuda.h is not included.
inline constexpr int out_of_memory = 2;

// Returns the number of refused requests of the incident that cuwarden's rungs (attempts) served.
inline std::uint64_t rescues_of(const ledger::IncidentView& incident) {
  return std::accumulate(incident.rescued.begin(), incident.rescued.end(), std::uint64_t{0});
}

// A refused request, and all facts from which the verdict about its cause may follow. "The refusal"
// is the first refusal of the incident.
struct IncidentCase {
  // The refused request, with the facts of its first refusal and counts of later ones. If the
  // refusal is happening now, only the facts and the group are set.
  ledger::IncidentView incident;
  Kind kind{};                       // kind of memory that the refused request asked for
  DeviceOrdinal device = no_device;  // device of the refused request; no_device: host memory
  HookId api;             // CUDA function that the program called for the refused request
  StackId stack;          // call stack of the refused request; 0: none was recorded
  std::string program;    // path of the file of the process's program
  std::string requester;  // path of the module (file of code) that called CUDA; empty: unknown
  std::string slice;      // name of the MIG slice that is the device; empty: it is no slice
  // Modules (files of code) whose calls had allocated device memory that was live at the refusal:
  // their paths and these live bytes. Only the call stacks that held most memory, or locked most
  // unused bytes in slabs, count. The path of an unknown module is empty.
  std::vector<std::pair<std::string, std::uint64_t>> modules;
  // Reserves (memory that libraries keep for themselves) with their live bytes at the refusal,
  // largest first. They lie in the memory that was asked for: the device's or the host's. Only the
  // call stacks that held most memory count. If the allocator that asked empties its own cache
  // before the program sees an error, that allocator's reserve is left out.
  std::vector<std::pair<const LibraryReserve*, std::uint64_t>> reserves;
  // Other processes that used the device at the refusal. Their texts point into the ledger, and are
  // valid as long as it is.
  ledger::NamedProcesses others;
  // Live device bytes, at the refusal, of call stacks whose live bytes grew steadily until then.
  // Only the call stacks that held most memory, or locked most unused bytes in slabs, count. If
  // frameworks' blocks of growing call stacks had more bytes, the bytes of these blocks.
  std::uint64_t growing_bytes = 0;
  // Setting that the user has to change to permit meshing (two half-empty pages share one page of
  // memory), such as "CUWARDEN_MESH=on". Empty: no setting forbids meshing.
  std::string meshing_wants;
  // True if CUWARDEN_POOL lets cuwarden try to serve refused requests.
  bool rescues = true;
  // True if CUWARDEN_FRAMEWORKS lets cuwarden's Python module register reclaimers (callbacks that
  // empty a framework's cache).
  bool asks_frameworks = false;
  bool waits = false;   // true if a refused request may wait for memory (CUWARDEN_WAIT)
  bool spills = false;  // true if a refused request may get host memory (CUWARDEN_SPILL)
};

// Finds the modules (files of code) of a call stack: the one that called CUDA, and the one that
// asked for the memory. Reads each stack once. The work is bounded even if a damaged ledger claims
// many stacks and modules.
class StackModules {
 public:
  // Keeps a reference to the reader of the ledger, which must outlive this object.
  explicit StackModules(const ledger::Reader& reader) : reader_(reader) {}
  // Returns the path of the module that called CUDA: that of the innermost frame outside CUDA's
  // libraries. Empty: unknown. The text lives as long as this object. `stack`: a row of the ledger.
  const std::string& of(StackId stack) { return modules_of(stack).caller; }
  // Returns the path of the module that asked for the memory: that of the innermost frame outside
  // CUDA's libraries and outside layers between them and the asker (is_between_cuda_and_asker()).
  // Empty: unknown. The text lives as long as this object. `stack`: a row of the ledger.
  const std::string& asker_of(StackId stack) { return modules_of(stack).asker; }

 private:
  // The modules that were found for one call stack.
  struct Modules {
    // caller: path of the module that called CUDA. asker: path of the module that asked for the
    // memory. Empty: unknown.
    std::string caller, asker;
  };
  // Returns the modules of a stack, which is a row of the ledger. Reads the stack at the first
  // call. The reference is valid as long as this object.
  const Modules& modules_of(StackId);

  const ledger::Reader& reader_;  // reads the ledger; not owned
  // The modules (files of code) of each call stack that was looked at so far, by the number of the
  // stack's row in the ledger.
  std::map<std::uint32_t, Modules> known_;
  // Number of rows of the ledger's table of modules that this object may still read. Bounds the
  // work in a damaged ledger.
  std::uint64_t rows_left_ = 50'000'000;
};

// Returns the case of an incident: the refused request with all facts that verdicts look at. The
// incident is a row of the ledger. Returns null if the ledger does not have the incident's group
// (stack, function, kind, device).
std::optional<IncidentCase> case_of(const ledger::Reader&, const ledger::IncidentView&,
                                    StackModules&);
// Returns the case of a refusal that is happening in this process: the refused request with all
// facts that verdicts look at. It is made from the facts, the largest holders of memory, and the
// other processes on the device. `names`: reader of this process's ledger, for stacks, modules and
// names. `group`: group (stack, function, kind, device) to which the refused call belongs. Returns
// null if the ledger does not have the group. `modules`: finds the modules of stacks, and keeps
// them for further calls.
std::optional<IncidentCase> case_of(const ledger::Reader& names, GroupId group,
                                    const ledger::IncidentFacts&,
                                    std::span<const ledger::IncidentHolding>,
                                    const ledger::NamedProcesses&, StackModules& modules);

// True if the name of the device says that it is a MIG slice: a part of a physical GPU.
bool is_slice(const ledger::DeviceView&) noexcept;

// Returns the free bytes of the refused request's device at the refusal, by cuMemGetInfo; or by
// NVML, if there was no context in which to ask cuMemGetInfo. Null if neither is known.
std::optional<std::uint64_t> free_bytes_of(const ledger::IncidentFacts&);

// True if the refused request's device shares its memory with the host.
bool is_integrated(const ledger::IncidentFacts&) noexcept;

// Returns the used bytes of the refused request's device at the refusal, divided into items such as
// live memory and contexts. `device`: ordinal of this device. Null if host memory was requested
// (no_device), or if the size or the free bytes of the device are unknown or impossible.
std::optional<Account> account_of(DeviceOrdinal device, const ledger::IncidentFacts&);
// Returns the used bytes of the refused request's device at the refusal, divided into items such as
// live memory and contexts. Null if host memory was requested, or if the size or the free bytes of
// the device are unknown or impossible.
inline std::optional<Account> account_of(const IncidentCase& given) {
  return account_of(given.device, given.incident);
}

}  // namespace cuwarden
