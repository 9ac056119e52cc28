// An incident (a request that failed, nearly always for lack of memory) as values: the request, and
// the state of device and host when it was refused. The refused thread fills them in, or they are
// read from a ledger.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/format/incident_layout.hpp"

namespace cuwarden::ledger {

// A request that was refused for lack of memory, or a context that the compute mode refused, with
// the facts that were known at the refusal.
struct IncidentFacts {
  Asked asked{};   // purpose of the refused call, such as memory, a context or a launch
  int result = 0;  // the CUresult with which the driver refused the request
  // Bytes that the refused call requested or, if it names no size, needed; 0: unknown.
  std::uint64_t bytes = 0;
  // Bytes and number of this process's live allocations at the refusal, indexed by Kind: on the
  // device of the request, or on the host if host memory was requested. Blocks of frameworks do not
  // count, since they lie in other memory. Zeros until Incidents::measure() has added the numbers.
  std::array<std::uint64_t, kind_count> live_bytes{}, live_count{};
  // Values of the facts, indexed by Fact and in the unit that Fact gives; unknown_value: the fact
  // is not known.
  std::array<std::uint64_t, fact_count> facts = [] {
    std::array<std::uint64_t, fact_count> unknown{};
    unknown.fill(unknown_value);
    return unknown;
  }();

  // Returns the fact's value, in the unit that Fact gives; no_limit for a limit that does not
  // exist. Null if the fact is not known.
  std::optional<std::uint64_t> fact(Fact which) const noexcept {
    const std::uint64_t value = facts[static_cast<std::size_t>(which)];
    return value == unknown_value ? std::nullopt : std::optional(value);
  }
  // Stores a fact's value, in the unit that Fact gives. no_limit: the limit does not exist;
  // unknown_value: the fact is not known.
  void set(Fact which, std::uint64_t value) noexcept {
    facts[static_cast<std::size_t>(which)] = value;
  }
};

// A group of this process's allocations (with the same stack, CUDA function, kind and device) that
// held much memory when a request was refused. The memory was on the request's device, or on the
// host if host memory was requested.
struct IncidentHolding {
  GroupId group;                       // row of the group in the groups table; 0: none
  std::uint64_t count = 0, bytes = 0;  // number of the group's live allocations; their bytes
  // Rate at which the group's live bytes grew in the last three quarters of the time since its
  // oldest live allocation. Null: they do not grow steadily, or the rate was not determined.
  std::optional<std::uint64_t> growth_bytes_per_minute{};
  // The group's part of the locked bytes: these are free, but in slabs of the driver with live
  // allocations. A slab's locked bytes are divided equally among its live allocations. Null: 0
  // bytes, not determined, or not among the four largest parts.
  std::optional<std::uint64_t> slab_locked_bytes{};
};

// Another process that used the device of a refused request at the moment of the refusal, as NVML
// and /proc describe it.
struct OtherProcess {
  std::uint32_t pid = 0, parent = 0;  // pid of the process and of its parent; parent 0: unknown
  // Bytes of the device that the process uses; unknown_value: not known.
  std::uint64_t bytes = unknown_value;
  SeenBy seen_by = SeenBy::nvml;           // way in which the process was found to use the device
  RunState run_state = RunState::unknown;  // state of the process at the refusal
  // True if the process's uid is known, and is not that of the process with the refused request.
  bool is_of_another_user = false;
  std::int64_t start_realtime_ns = 0;  // start of the process, since 1970; 0: unknown
  // Path of the program's file, or only its name of at most 15 characters, for the process and for
  // its parent; empty: unknown. The object owns none of its texts: they must outlive it.
  std::string_view program{}, parent_program{};
  std::string_view user{};  // name of the process's user, or the uid in digits; empty: unknown
  // Id of the Slurm job that the process's cgroup names; empty: none.
  std::string_view job{};
  // Id of the container (for LXC, its name) that the process's cgroup names; empty: none.
  std::string_view container{};
  std::string_view pod{};  // uid of the Kubernetes pod that the process's cgroup names; empty: none
  std::string_view unit{};  // systemd unit that the process's cgroup names; empty: none
};

// The other processes on the device of a refused request, for advice to the user. Keeps at most 3
// processes for each way in which processes are found (SeenBy), and only counts further ones.
class NamedProcesses {
 public:
  // Adds a process that used the device. If there are 3 already that were found in the same way
  // (SeenBy), the process is only counted. Its texts must outlive the object.
  void add(const OtherProcess& process) noexcept {
    std::size_t& named = named_[static_cast<std::size_t>(process.seen_by)];
    if (named == most_each) {
      ++unnamed_[static_cast<std::size_t>(process.seen_by)]
                [static_cast<std::size_t>(process.run_state)];
      return;
    }
    ++named;
    all_[size_++] = process;
  }
  // Returns the processes that are stored with all facts: the first 3 of each SeenBy that were
  // added, in that order. All others are only counted. The result is valid until the next add().
  std::span<const OtherProcess> all() const noexcept { return std::span(all_).first(size_); }
  // Returns the number of the processes that were found in the way `seen_by`, were in this state,
  // and were only counted, so that all() lacks them.
  std::size_t unnamed(SeenBy seen_by, RunState state) const noexcept {
    return unnamed_[static_cast<std::size_t>(seen_by)][static_cast<std::size_t>(state)];
  }

 private:
  // Most entries of all_ for each way in which processes are found (SeenBy).
  static constexpr std::size_t most_each = 3;
  // The processes that were not only counted. The first size_ entries are in use.
  std::array<OtherProcess, most_each * seen_by_count> all_{};
  std::array<std::size_t, seen_by_count> named_{};  // number of entries of all_ in use, by SeenBy
  // Number of processes that were only counted, by SeenBy and RunState.
  std::array<std::array<std::size_t, run_state_count>, seen_by_count> unnamed_{};
  std::size_t size_ = 0;  // number of entries of all_ in use
};

// Figures of the driver's slabs of one size class when a request was refused, on the request's
// device. A slab is a 2 MiB unit from which the driver cuts small allocations.
struct SlabClassRow {
  // Size in bytes of the allocations that fill most of each slab, rounded up to a power of two.
  std::uint64_t class_bytes = 0;
  std::uint64_t slab_count = 0;  // number of slabs of the size class
  // Number, and sum of the requested bytes, of all live allocations in slabs of the size class.
  std::uint64_t live_count = 0, live_bytes = 0;
};
// One of the driver's slabs when a request was refused, on the request's device. A slab is a 2 MiB
// unit from which the driver cuts small allocations.
struct SlabRow {
  DeviceAddress address;  // address of the slab's first byte
  // Number, and sum of the requested bytes, of the live allocations in the slab.
  std::uint64_t live_count = 0, live_bytes = 0;
  // Groups with the most live allocations in the slab, most first; 0: there are no more groups.
  std::array<GroupId, slab_group_count> groups{};
};
// One attempt (rung) to serve a refused request, with its outcome.
struct RungRow {
  std::uint32_t order = 0;        // position among the rungs tried for the request, from 1
  Rung rung{};                    // the rung that was tried
  RungOutcome outcome{};          // the rung's outcome; `under_way` until it has ended
  std::uint64_t duration_ns = 0;  // nanoseconds that the rung has taken so far
  // Name of the reclaimer (a callback that empties a cache) that the rung called; empty for other
  // rungs.
  std::string_view name;
};

}  // namespace cuwarden::ledger
