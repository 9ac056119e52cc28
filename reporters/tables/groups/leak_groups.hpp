// The leaks that a ledger shows, by group: allocations that are still live, and allocations that
// only the end of their context released.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reporters/model/growth.hpp"
#include "reporters/model/memory.hpp"
#include "reporters/model/put.hpp"
#include "reporters/tables/groups/call_frames.hpp"
#include "runtime_hooks/ledger/format/reach.hpp"
#include "runtime_hooks/ledger/read/group_sums.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// The live allocations of a group: of one call stack, function, kind of memory and device. If
// `released_by_context` is true, the allocations of the group that the end of a context released.
struct LeakGroup {
  // The group's row in the ledger: call stack, function, kind, device and counters.
  ledger::GroupView group;
  // Number and bytes of the allocations that are live, or were released by the end of their
  // context.
  std::uint64_t count = 0, bytes = 0;
  // Times at which the oldest and the newest live allocation were made, in ns since the process's
  // start. Null: unknown, or the end of their context released them.
  std::optional<std::uint64_t> first_ns, last_ns;
  // Address of the oldest live allocation; null: unknown, or the end of their context released
  // them.
  std::optional<DeviceAddress> example;
  // Number of handles of virtual memory (cuMemCreate) that are mapped nowhere and were not
  // released; handles that were never mapped count, too. Null if unknown, for all other kinds of
  // memory, and if released_by_context.
  std::optional<std::uint64_t> unmapped_count;
  // Number and bytes of the live allocations by what a search for pointers found of them.
  struct Sum {
    std::uint64_t count = 0, bytes = 0;
  };
  std::array<Sum, reach_count> by_reach{};
  // Bytes of streams, modules or executable graphs that have ended, but whose memory the driver
  // keeps for later ones. 0 for all other kinds.
  std::uint64_t kept_bytes = 0;
  // True if these are pieces of code (kernels) that were loaded at first launches. The program
  // cannot free them but with their library.
  bool is_code = false;
  // True if the bytes of a live object are not known for certain (record_bytes_uncertain), or are
  // an equal part of what several objects took together (record_bytes_shared). Only streams,
  // modules and executable graphs have such bytes.
  bool is_uncertain = false, is_shared = false;
  // True if a suppression excludes the group from the leaks.
  bool is_suppressed = false;
  // True if the program still marked steps when the newest live allocation was made.
  bool steps_cover = false;
  // true: the end of their context released the allocations; false: they are live.
  bool released_by_context = false;
  // Numbers of the differences of which live objects have equal parts (Record::difference), each
  // once. Objects of several groups may have parts of one difference.
  std::set<std::uint16_t> differences;
  // Named steps (such as tests) in which live allocations were made, most bytes first. Allocations
  // outside of such steps are left out.
  std::vector<model::NamedStep> named_steps;
  // Growth of the live allocations; with no allocation if unknown or released_by_context.
  Growth growth;
  // Growth of the live allocations by steps of the program: numbers of steps stand for times, and
  // the number after the last step for the end. With no allocation if the program marked fewer than
  // four steps.
  Growth by_step;

  // True if the group is judged by steps: they cover it, or show a growth that times do not show.
  bool is_judged_by_steps() const {
    return by_step.count != 0 && (steps_cover || (by_step.growing() && !growth.growing()));
  }
  // Returns the growth by which the group is judged.
  const Growth& judged_growth() const { return is_judged_by_steps() ? by_step : growth; }
};

// Sets the fields of a row of the report that tell how the group grows. `Row`: a struct of the
// model with these fields.
template <class Row>
void set_growth(const LeakGroup& group, Row& row) {
  row.growth = group.judged_growth().name();
  if (group.judged_growth().growing())
    row.growth_bytes_per_minute = group.growth.bytes_per_minute();
  if (!group.is_judged_by_steps()) return;
  row.first_step = group.by_step.first_ns;
  row.growth_bytes_per_step = group.by_step.bytes_per_unit();
}

// Sorts the groups: the largest first by bytes, then by count.
void sort_groups(std::vector<LeakGroup>&);

// The end of a process.
struct EndOfRun {
  std::uint64_t end_ns = 0;  // time of the end, in ns since the process's start
  bool is_failure = false;   // true if it aborted, or ended with an exit status other than 0
};

// Returns the groups of allocations (stack, function, kind, device) that have live allocations, and
// those that have allocations which the end of a context released: largest first by bytes, then by
// count. Adds all groups of the ledger to the
// third parameter, the sums by kind and device. Reads the records of allocations twice, because
// Growth needs each group's oldest live allocation first.
std::vector<LeakGroup> leak_groups(const ledger::Reader&, const EndOfRun&, ledger::GroupSums&);
// Returns the groups of allocations (stack, function, kind, device) that leak_groups() returns, for
// a process that still runs. Counts and bytes come from the groups' counters, since the records of
// single allocations change while they are read. The records only give times and addresses.
// `end_ns`: present time, in ns since the process's start. Adds all groups of the ledger to the
// third parameter, the sums by kind and device.
std::vector<LeakGroup> live_groups(const ledger::Reader&, std::uint64_t end_ns, ledger::GroupSums&);

// Returns the sums of bytes and allocations over all groups: of live allocations (the leaks), of
// suppressed ones, and of those that the ends of contexts released.
model::Leaks leaks_of(const std::vector<LeakGroup>&);
// Calls the last parameter, with a row of the report, for each group of allocations that were not
// freed. CallFrames::name_all() must have been called.
void put_leak_groups(const ledger::Reader&, const std::vector<LeakGroup>&, const CallFrames&,
                     Put<model::LeakGroup>);

}  // namespace cuwarden
