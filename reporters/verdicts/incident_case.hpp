// A request that was refused, and what its device's memory was made of at that moment.
#pragma once

#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// The CUresult CUDA_ERROR_OUT_OF_MEMORY; cuda.h is not included here.
inline constexpr int out_of_memory = 2;

// Returns the number of the incident's refusals that a rung served.
inline std::uint64_t rescues_of(const ledger::IncidentView& incident) {
  return std::accumulate(incident.rescued.begin(), incident.rescued.end(), std::uint64_t{0});
}

// The used bytes of a device, divided into items with the report's names for them.
struct Account {
  std::vector<std::pair<std::string, std::uint64_t>> items;
  std::int64_t unexplained = 0;  // used bytes minus the items; below 0 if the items are more

  explicit Account(std::uint64_t used_bytes) : unexplained(static_cast<std::int64_t>(used_bytes)) {}
  void add(std::string item, std::uint64_t bytes);
  // Adds live bytes of a kind, without the spilled bytes, since these lie in host memory.
  struct Spilled {
    // spilled bytes of all kinds; those of them that were allocated in stream order
    std::uint64_t bytes = 0, in_stream_order_bytes = 0;
  };
  void add_live(Kind, std::uint64_t bytes, const Spilled&);
  // Adds the bytes of other processes; to be called after the live memory was added. Memory of
  // others that this process opened is in `bytes`, too: it counts once.
  void add_other_processes(std::uint64_t bytes);
  std::uint64_t of(std::string_view item) const noexcept;
};

// A refused request, and all facts that a verdict may follow from.
struct IncidentCase {
  ledger::IncidentView incident;
  Kind kind{};
  DeviceOrdinal device = no_device;
  HookId api;
  StackId stack;
  std::string program;    // path of the program's file
  std::string requester;  // path of the module that made the request; empty: unknown
  std::string slice;      // name of the device if it is a MIG slice; otherwise empty
  // Live bytes by the path of the module that allocated them, for the groups that held most.
  std::vector<std::pair<std::string, std::uint64_t>> modules;
  std::uint64_t growing_bytes = 0;  // live bytes of groups that grow
  std::string meshing_wants;        // the setting that prevents meshing; empty if none does
};

// Finds the module that a stack leads to: that of its innermost frame outside CUDA's libraries.
// Each stack is read once. In a damaged ledger the number of frames that are read is bounded.
class StackModules {
 public:
  explicit StackModules(const ledger::Reader& reader) : reader_(reader) {}
  const std::string& of(StackId);  // the module's path; empty: unknown

 private:
  const ledger::Reader& reader_;
  std::map<std::uint32_t, std::string> known_;
  std::uint64_t rows_left_ = 50'000'000;  // of modules, looked at
};

std::optional<IncidentCase> case_of(const ledger::Reader&, const ledger::IncidentView&,
                                    StackModules&);
// Returns the case of a live incident, from its own values; only names are read from the ledger.
// `group`: group of the refused call. Null if the ledger does not know that group.
std::optional<IncidentCase> case_of(const ledger::Reader& names, GroupId group,
                                    const ledger::IncidentFacts&,
                                    std::span<const ledger::IncidentHolding>, StackModules&);

// True if the device is a MIG slice.
bool is_slice(const ledger::DeviceView&) noexcept;

// Returns the free bytes of the device as CUDA says, or as NVML says if there was no context.
std::optional<std::uint64_t> free_bytes_of(const ledger::IncidentFacts&);

// Returns the account of the device at the refusal; null if the device was not read then.
std::optional<Account> account_of(DeviceOrdinal, const ledger::IncidentFacts&);
inline std::optional<Account> account_of(const IncidentCase& given) {
  return account_of(given.device, given.incident);
}

}  // namespace cuwarden
