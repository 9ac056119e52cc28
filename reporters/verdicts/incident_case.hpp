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

// CUresult of a refusal for lack of memory.
inline constexpr int out_of_memory = 2;

// Returns the number of the incident's refusals that a rung served.
inline std::uint64_t rescues_of(const ledger::IncidentView& incident) {
  return std::accumulate(incident.rescued.begin(), incident.rescued.end(), std::uint64_t{0});
}

// Parts that a device's used bytes are made of, by their names in the report.
struct Account {
  std::vector<std::pair<std::string, std::uint64_t>> items;
  std::int64_t unexplained = 0;  // what the items leave of them; < 0: the items are more

  explicit Account(std::uint64_t used_bytes) : unexplained(static_cast<std::int64_t>(used_bytes)) {}
  void add(std::string item, std::uint64_t bytes);
  // Adds live bytes of a kind. Spilled memory is the device's for the program, and the host's in
  // fact: it does not count.
  struct Spilled {
    std::uint64_t bytes = 0, in_stream_order_bytes = 0;  // of all kinds; of those
  };
  void add_live(Kind, std::uint64_t bytes, const Spilled&);
  // Adds the bytes of other processes; to be called after the live memory was added. Memory of
  // others that this process opened is in `bytes`, too: it counts once.
  void add_other_processes(std::uint64_t bytes);
  std::uint64_t of(std::string_view item) const noexcept;
};

// A request that was refused, and all that a verdict may follow from.
struct IncidentCase {
  ledger::IncidentView incident;
  Kind kind{};
  DeviceOrdinal device = no_device;
  HookId api;
  StackId stack;
  std::string program;    // path of the program's file
  std::string requester;  // of the module that asked; empty: unknown
  std::string slice;      // the device's name, where it is a part of one (MIG); else empty
  // Live bytes by module that allocated them, of those who held most.
  std::vector<std::pair<std::string, std::uint64_t>> modules;
  std::uint64_t growing_bytes = 0;  // of those that grow
  std::string meshing_wants;  // the setting that keeps the pool's memory where it is; else empty
};

// The module that a stack leads to: of its innermost frame outside CUDA's own libraries. Each stack
// is looked at once, and of a damaged ledger's not more than can be done in a moment.
class StackModules {
 public:
  explicit StackModules(const ledger::Reader& reader) : reader_(reader) {}
  const std::string& of(StackId);  // empty: unknown

 private:
  const ledger::Reader& reader_;
  std::map<std::uint32_t, std::string> known_;
  std::uint64_t rows_left_ = 50'000'000;  // of modules, looked at
};

std::optional<IncidentCase> case_of(const ledger::Reader&, const ledger::IncidentView&,
                                    StackModules&);
// As above, of a live incident's own values: only names are read from the ledger. `group` is the
// group of the refused call.
std::optional<IncidentCase> case_of(const ledger::Reader& names, GroupId group,
                                    const ledger::IncidentFacts&,
                                    std::span<const ledger::IncidentHolding>, StackModules&);

// Returns true for a device that is a part of one (MIG).
bool is_slice(const ledger::DeviceView&) noexcept;

// Returns the free bytes of the device as CUDA says, or as NVML says if there was no context.
std::optional<std::uint64_t> free_bytes_of(const ledger::IncidentFacts&);

// Null if the device was not read at that moment.
std::optional<Account> account_of(DeviceOrdinal, const ledger::IncidentFacts&);
inline std::optional<Account> account_of(const IncidentCase& given) {
  return account_of(given.device, given.incident);
}

}  // namespace cuwarden
