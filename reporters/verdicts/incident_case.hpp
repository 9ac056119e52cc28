// A refused request, and the parts of which its device's used memory consisted at that moment.
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

// Returns the number of the incident's refused requests that were served after all by one of
// cuwarden's attempts (rungs).
inline std::uint64_t rescues_of(const ledger::IncidentView& incident) {
  return std::accumulate(incident.rescued.begin(), incident.rescued.end(), std::uint64_t{0});
}

// A refused request, and all facts from which the verdict about its cause may follow.
struct IncidentCase {
  // The refused request, with the facts of its first refusal and counts of later ones. For a
  // refusal that is happening, only the facts and the group are set.
  ledger::IncidentView incident;
  Kind kind{};                       // kind of memory that the refused request asked for
  DeviceOrdinal device = no_device;  // device of the refused request; no_device: host memory
  HookId api;             // CUDA function that the program called for the refused request
  StackId stack;          // call stack of the refused request
  std::string program;    // path of the file of the process's program
  std::string requester;  // path of the module that made the request; empty: unknown
  std::string slice;      // name of the device if it is a MIG slice; otherwise empty
  // Paths of modules that held device memory at the refusal, and the live bytes that each one had
  // allocated. Only the call stacks count that held or locked most memory. An unknown module has an
  // empty path.
  std::vector<std::pair<std::string, std::uint64_t>> modules;
  // Reserves of libraries in the memory that was asked for (that of the device, or the host's), and
  // their live bytes at the refusal, largest first. Only the call stacks count that held most
  // memory. The cache of the allocator that asked is left out, if it is emptied by the allocator
  // itself before the program sees an error.
  std::vector<std::pair<const LibraryReserve*, std::uint64_t>> reserves;
  // Other processes that used the device at the refusal. Their texts live as long as the ledger's
  // bytes.
  ledger::NamedProcesses others;
  // Live device bytes of the call stacks whose live bytes grew steadily until the refusal. Only the
  // call stacks count that held or locked most memory.
  std::uint64_t growing_bytes = 0;
  // Setting that the user would have to change to permit meshing (two pages of addresses share one
  // page of memory), such as "CUWARDEN_MESH=on". Empty: no setting forbids meshing.
  std::string meshing_wants;
  // True if cuwarden may try to serve refused requests at all (CUWARDEN_POOL).
  bool rescues = true;
  // True if cuwarden's module registers reclaimers of frameworks (CUWARDEN_FRAMEWORKS).
  bool asks_frameworks = false;
  bool waits = false;   // true if a refused request may wait for memory (CUWARDEN_WAIT)
  bool spills = false;  // true if it may get host memory (CUWARDEN_SPILL)
};

// Finds the module that made a CUDA call: that of the call stack's innermost frame outside CUDA's
// libraries. Each stack is read once. The work is bounded even if a damaged ledger claims many
// stacks and modules.
class StackModules {
 public:
  // Keeps a reference to the reader of the ledger, which the caller keeps alive.
  explicit StackModules(const ledger::Reader& reader) : reader_(reader) {}
  // Returns the path of the module that made the CUDA call of this stack (a row of the ledger);
  // empty: unknown. The text lives as long as this object.
  const std::string& of(StackId stack) { return modules_of(stack).caller; }
  // Returns the path of the module that asked for the memory of this stack (a row of the ledger):
  // the innermost one that is not is_between_cuda_and_asker(). Empty: unknown. The text lives as
  // long as this object.
  const std::string& asker_of(StackId stack) { return modules_of(stack).asker; }

 private:
  // The modules that were found for one call stack.
  struct Modules {
    // caller: path of the module that made the CUDA call, which of() returns. asker: path of the
    // module that asked for the memory, which asker_of() returns. Empty: unknown.
    std::string caller, asker;
  };
  // Returns the modules of a stack (a row of the ledger), which the first call finds. The reference
  // is valid as long as this object.
  const Modules& modules_of(StackId);

  const ledger::Reader& reader_;  // reads the ledger; not owned
  // Modules that were found so far, by the stack's row in the ledger.
  std::map<std::uint32_t, Modules> known_;
  // Number of rows of modules that may still be looked at; bounds the work in a damaged ledger.
  std::uint64_t rows_left_ = 50'000'000;
};

// Returns the case of an incident, a row of the ledger: the refused request with all that verdicts
// look at. Null if the group of allocations (stack, function, kind, device) to which the refused
// call belongs cannot be read.
std::optional<IncidentCase> case_of(const ledger::Reader&, const ledger::IncidentView&,
                                    StackModules&);
// Returns the case (all that verdicts look at) of a refusal that is happening in this process. It
// is made from the given facts, the largest holders of memory, and the other processes on the
// device. `names`: reader of this process's ledger, for stacks, modules and names. `group`: group
// of allocations (stack, function, kind, device) to which the refused call belongs; the result is
// null if the ledger does not have it. The last parameter finds modules of stacks, and keeps what
// it found.
std::optional<IncidentCase> case_of(const ledger::Reader& names, GroupId group,
                                    const ledger::IncidentFacts&,
                                    std::span<const ledger::IncidentHolding>,
                                    const ledger::NamedProcesses&, StackModules&);

// True if the device is a MIG slice, a part of a physical GPU, as its name tells.
bool is_slice(const ledger::DeviceView&) noexcept;

// Returns the free bytes of the refused request's device at the refusal, as cuMemGetInfo gave them;
// if those are unknown, for lack of a context to ask in, as NVML gave them. Null if neither is
// known.
std::optional<std::uint64_t> free_bytes_of(const ledger::IncidentFacts&);

// True if the refused request's device shares its memory with the host.
bool is_integrated(const ledger::IncidentFacts&) noexcept;

// Returns the used bytes of the refused request's device at the refusal, divided into items such as
// live memory and contexts. The ordinal names this device. Null if host memory was requested
// (no_device), or if the size or the free bytes of the device are unknown or impossible.
std::optional<Account> account_of(DeviceOrdinal, const ledger::IncidentFacts&);
// Returns the used bytes of the request's device at the refusal, divided into items. Null if host
// memory was requested, or if the size or the free bytes of the device are unknown or impossible.
inline std::optional<Account> account_of(const IncidentCase& given) {
  return account_of(given.device, given.incident);
}

}  // namespace cuwarden
