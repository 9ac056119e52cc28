// The part of the ledger's layout that describes refused requests, and the facts known at that
// moment.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/ledger/format/string_ref.hpp"

namespace cuwarden::ledger {

inline constexpr std::uint64_t unknown_bytes = UINT64_MAX;  // value of an unknown number

// The thing that a refused call asked for. `memory`: the call is an allocation.
enum class Asked : std::uint8_t { memory, context, module, launch, graph, stream, limit };
inline constexpr std::uint8_t asked_count = 7;

// Facts about the moment of an incident's first refusal. A fact that is not known has the value
// unknown_bytes. The enumerators' numbers are part of the layout.
enum class Fact : std::uint8_t {
  // Facts about the device, in bytes.
  total_bytes,
  free_bytes,
  memory_pool_idle_bytes,  // bytes that this process's memory pools and graphs keep unused
  slab_locked_bytes,
  rounding_bytes,
  context_bytes,
  module_bytes,
  local_memory_bytes,
  heap_bytes,
  stream_bytes,
  other_processes_bytes,
  // Facts about the host. The value of a limit that does not exist is `no_limit`.
  ram_bytes,
  ram_available_bytes,
  swap_free_bytes,
  overcommit_mode,
  commit_limit_bytes,
  committed_bytes,
  address_space_limit_bytes,
  address_space_bytes,
  largest_gap_bytes,
  mappings,
  max_mappings,
  cgroup_limit_bytes,
  cgroup_used_bytes,
  // Restrictions of the device's use, and what NVML says.
  compute_mode,        // CUcomputemode, if a context was refused
  whole_device_bytes,  // size of the whole device, if this one is a slice of it (MIG)
  mps_limit_bytes,     // quota of this process on the device (MPS)
  nvml_free_bytes,     // free bytes by NVML, if there was no context to read the device in
  slab_count,
  graph_rest_bytes,    // bytes in chunks of graphs that none of the graphs' allocations has
  given_back_bytes,    // bytes that the driver gave back while it refused; free_bytes includes them
  spilled_bytes,       // bytes of live device allocations that are in host memory
  arena_unused_bytes,  // bytes that the pool holds and that no allocation has
  spilled_in_stream_order_bytes,  // the part of spilled_bytes in stream-ordered allocations
};
inline constexpr std::size_t fact_count = 34;
inline constexpr std::uint64_t no_limit = UINT64_MAX - 1;  // value of a limit that is not set

// The rungs: the attempts to serve a request that the driver has refused.
enum class Rung : std::uint8_t { retry, synchronise, trim, reclaim, pool, mesh, wait, spill };
inline constexpr std::size_t rung_count = 8;
enum class RungOutcome : std::uint8_t {
  served,
  no_memory,
  nothing_to_do,
  timed_out,
  other_error,
  unsafe,  // not tried: the requesting thread may hold a lock that the rung takes
  failed,
  under_way,
};
inline constexpr std::uint8_t rung_outcome_count = 8;

// A request that was refused for lack of memory. Later refusals at the same call site are counted
// here and get no row of their own. But if all earlier ones were served by a rescue and one fails,
// it has another cause and gets a row of its own.
struct Incident {
  std::atomic<std::uint32_t> state;  // 1 = published
  std::uint32_t group;
  std::uint32_t thread;
  std::int32_t result;  // the driver's CUresult
  std::uint64_t time_ns;
  std::uint64_t bytes;  // size of the request; 0: the call does not say
  Asked asked;
  std::uint8_t reserved[3];
  std::uint32_t number;  // counts the incidents of this call site, from 1
  std::atomic<std::uint64_t> repeats, last_ns, last_bytes;
  // Number of refusals after which the same thread soon had an equal request served.
  std::atomic<std::uint64_t> recovered;
  // Number of refusals that reached the program. Refusals that are counted neither here nor in
  // `rescued` are still on the ladder.
  std::atomic<std::uint64_t> failed;
  // Number of requests that each rung has served, so that the program saw no refusal.
  std::atomic<std::uint64_t> rescued[rung_count];
  std::atomic<std::uint64_t> rescued_bytes;
  std::uint64_t live_bytes[kind_count];  // live bytes of each kind, on the group's device or host
  std::uint64_t live_count[kind_count];
  std::atomic<std::uint64_t> facts[fact_count];
};

// A large holder of memory on the device (or the host) at that moment: a group of this process, or
// another process.
struct IncidentHolder {
  std::atomic<std::uint32_t> state;  // 1 = published
  std::uint32_t incident;
  std::uint32_t group;  // 0: another process
  std::uint32_t pid;    // pid of the other process
  std::uint64_t count, bytes;
  std::atomic<std::uint64_t> growth_bytes_per_minute;  // unknown_bytes: it does not grow
  std::atomic<std::uint64_t> slab_locked_bytes;        // locked by its pieces; or unknown_bytes
};

// The slabs of one size class at that moment.
struct IncidentClass {
  std::atomic<std::uint32_t> state;  // 1 = published
  std::uint32_t incident;
  std::uint64_t class_bytes, slab_count, live_count, live_bytes;
};

// A rung that was tried at the incident's first refusal.
struct IncidentRung {
  std::atomic<std::uint32_t> state;  // 1 = published
  std::uint32_t incident;
  std::uint64_t duration_ns;
  std::uint32_t order;  // position among the incident's rungs, from 1
  Rung rung;
  RungOutcome outcome;
  std::uint8_t reserved[2];
  StringRef name;  // the reclaimer's name; empty for other rungs
};

// One slab at the moment of an incident. All slabs of an incident have rows, or none if there was
// no room.
struct IncidentSlab {
  std::atomic<std::uint32_t> state;  // 1 = published
  std::uint32_t incident;
  std::uint64_t address, live_count, live_bytes;
};

}  // namespace cuwarden::ledger
