// The part of the ledger's layout that says what was refused, and what was known at that moment.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/ledger/format/string_ref.hpp"

namespace cuwarden::ledger {

inline constexpr std::uint64_t unknown_bytes = UINT64_MAX;

// What was asked for in a call that was refused for lack of memory.
enum class Asked : std::uint8_t { memory, context, module, launch, graph, stream, limit };
inline constexpr std::uint8_t asked_count = 7;

// What is known of the moment of an incident, or of the first of its repeats; unknown_bytes where
// it is not. Values are part of the layout.
enum class Fact : std::uint8_t {
  // Of the device.
  total_bytes,
  free_bytes,
  memory_pool_idle_bytes,  // of this process's memory pools and graphs
  slab_locked_bytes,
  rounding_bytes,
  context_bytes,
  module_bytes,
  local_memory_bytes,
  heap_bytes,
  stream_bytes,
  other_processes_bytes,
  // Of the host. A limit of `no_limit` is none.
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
  // What keeps a device from being used as it is.
  compute_mode,        // CUcomputemode, where a context was refused
  whole_device_bytes,  // of the device that this one is a slice of (MIG)
  mps_limit_bytes,     // of this process on the device
  nvml_free_bytes,     // where there was no context to ask in
  slab_count,
  graph_rest_bytes,    // of chunks that graphs use: what no allocation of theirs has
  given_back_bytes,    // by the driver while it refused: what is free includes it
  spilled_bytes,       // of what is live on the device: in the host's memory
  arena_unused_bytes,  // that the pool, which serves in the driver's stead, has and nobody asked
                       // for
  spilled_in_stream_order_bytes,  // of spilled_bytes
};
inline constexpr std::size_t fact_count = 34;
inline constexpr std::uint64_t no_limit = UINT64_MAX - 1;

// What may be tried before a refused request is refused to the program, and what came of it.
enum class Rung : std::uint8_t { retry, synchronise, trim, reclaim, pool, mesh, wait, spill };
inline constexpr std::size_t rung_count = 8;
enum class RungOutcome : std::uint8_t {
  served,
  no_memory,
  nothing_to_do,
  timed_out,
  other_error,
  unsafe,  // not tried: whoever asked may hold a lock that it takes
  failed,
  under_way,
};
inline constexpr std::uint8_t rung_outcome_count = 8;

// A request that was refused for lack of memory. The same request again, from the same stack, is
// counted here and not listed again; but what fails where all before it were served after all has a
// row of its own, since it has another cause.
struct Incident {
  std::atomic<std::uint32_t> state;  // 1 = published
  std::uint32_t group;
  std::uint32_t thread;
  std::int32_t result;  // CUresult
  std::uint64_t time_ns;
  std::uint64_t bytes;  // 0: the call does not say
  Asked asked;
  std::uint8_t reserved[3];
  std::uint32_t number;  // of those from this place, from 1
  std::atomic<std::uint64_t> repeats, last_ns, last_bytes;
  // How often, of all times, the thread soon had the same request served.
  std::atomic<std::uint64_t> recovered;
  // Of how many the program has heard. What is neither that nor rescued is being tried.
  std::atomic<std::uint64_t> failed;
  // How often it was served after all without the program's knowing, by the rung that did.
  std::atomic<std::uint64_t> rescued[rung_count];
  std::atomic<std::uint64_t> rescued_bytes;
  std::uint64_t live_bytes[kind_count];  // on the group's device, or the host's
  std::uint64_t live_count[kind_count];
  std::atomic<std::uint64_t> facts[fact_count];
};

// Who held most on the device (or the host) at that moment: groups of this process, and other
// processes.
struct IncidentHolder {
  std::atomic<std::uint32_t> state;
  std::uint32_t incident;
  std::uint32_t group;  // 0: another process
  std::uint32_t pid;    // of that one
  std::uint64_t count, bytes;
  std::atomic<std::uint64_t> growth_bytes_per_minute;  // unknown_bytes: does not grow
  std::atomic<std::uint64_t> slab_locked_bytes;        // by its pieces; unknown_bytes
};

// Slabs by what is in them, at that moment.
struct IncidentClass {
  std::atomic<std::uint32_t> state;
  std::uint32_t incident;
  std::uint64_t class_bytes, slab_count, live_count, live_bytes;
};

// What was tried at the first of its refusals.
struct IncidentRung {
  std::atomic<std::uint32_t> state;
  std::uint32_t incident;
  std::uint64_t duration_ns;
  std::uint32_t order;  // from 1
  Rung rung;
  RungOutcome outcome;
  std::uint8_t reserved[2];
  StringRef name;  // of the reclaimer
};

// One of those slabs. Either all of an incident get rows, or none: there was no room.
struct IncidentSlab {
  std::atomic<std::uint32_t> state;
  std::uint32_t incident;
  std::uint64_t address, live_count, live_bytes;
};

}  // namespace cuwarden::ledger
