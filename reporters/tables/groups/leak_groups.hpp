// The leaks that a ledger shows, by group: allocations that are still live, and allocations that
// only the end of their context released.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "reporters/model/growth.hpp"
#include "reporters/model/memory.hpp"
#include "reporters/model/put.hpp"
#include "reporters/model/row_progress.hpp"
#include "reporters/tables/groups/call_frames.hpp"
#include "runtime_hooks/ledger/format/reach.hpp"
#include "runtime_hooks/ledger/read/group_sums.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// The live allocations of a group: of one call stack, function, kind of memory and device. If
// `released_by_context` is true, these are instead the allocations of the group that the end of a
// context released.
struct LeakGroup {
  // The group's row in the ledger: call stack, function, kind, device and counters.
  ledger::GroupView group;
  // Number and bytes of the live allocations; if released_by_context is true, of the released ones.
  std::uint64_t count = 0, bytes = 0;
  // Times at which the oldest and the newest live allocation were made, in ns since the process's
  // start. Null: unknown, or released_by_context is true.
  std::optional<std::uint64_t> first_ns, last_ns;
  // Address of the oldest live allocation. Null: unknown, or released_by_context is true.
  std::optional<DeviceAddress> example;
  // Number of handles of virtual memory (cuMemCreate) that are mapped nowhere and were not
  // released; handles that were never mapped count, too. Null if unknown, for all other kinds of
  // memory, and if released_by_context is true.
  std::optional<std::uint64_t> unmapped_count;
  // A number of allocations, and the sum of their bytes.
  struct Sum {
    std::uint64_t count = 0, bytes = 0;
  };
  // Number and bytes of the live allocations by the result of the search for pointers to them; the
  // index is a Reach.
  std::array<Sum, reach_count> by_reach{};
  // Bytes of objects of the group that have ended. The driver keeps these bytes for later objects
  // of this kind. Only contexts, streams, modules and executable graphs have such bytes; 0 for all
  // other kinds.
  std::uint64_t kept_bytes = 0;
  // True if the group's allocations are code (kernels) that was loaded by its first launches. The
  // program can free such code only by unloading its library.
  bool is_code = false;
  // is_uncertain: true if the bytes of a live object are not known for certain
  // (record_bytes_uncertain). is_shared: true if they are an equal part of the bytes that several
  // objects took together (record_bytes_shared). Contexts, streams, modules and executable graphs
  // may be uncertain; contexts are never shared.
  bool is_uncertain = false, is_shared = false;
  // True if a rule of the user (a suppression) excludes the group from the leaks.
  bool is_suppressed = false;
  // True if the program still marked steps (such as iterations of a training loop) when the newest
  // live allocation was made.
  bool steps_cover = false;
  // true: the end of a context released the allocations; false: they are live
  bool released_by_context = false;
  // Numbers (Record::difference), from 1, of measurements of which live objects of this group have
  // a part. A measurement is the difference of the device's free bytes before and after several
  // objects were made. Its bytes are divided equally among these objects, also of other groups.
  std::set<std::uint16_t> differences;
  // Named steps (such as tests) in which live allocations were made, each with the number and bytes
  // of its allocations, most bytes first. Allocations outside of such steps are left out.
  std::vector<model::NamedStep> named_steps;
  // Growth of the live allocations over time. Growth::count is 0 if it is unknown, or if
  // released_by_context is true.
  Growth growth;
  // Growth by steps of the program. Only those live allocations are counted that were old at the
  // estimated end of the last step (Growth::survivors_end_ns()). Its members for times (first_ns,
  // end_ns) are numbers of steps; end_ns is the number of steps plus 1. Growth::count is 0 if there
  // are none, if the program marked fewer than four steps, or if released_by_context is true.
  Growth by_step;

  // True if by_step decides whether the group grows, and not `growth`: steps were marked until the
  // newest live allocation, or only by_step shows that the group grows.
  bool is_judged_by_steps() const {
    return by_step.count != 0 && (steps_cover || (by_step.growing() && !growth.growing()));
  }
  // Returns by_step or `growth`: the one that decides whether the group grows.
  const Growth& judged_growth() const { return is_judged_by_steps() ? by_step : growth; }
};

// Sets the fields of a row of the report that state how the group grows. `Row`: a struct of the
// model with these fields.
template <class Row>
void set_growth(const LeakGroup& group, Row& row) {
  row.growth = group.judged_growth().name();
  // by_step has survivors alone. Records of a process that still runs may be more than its groups
  // count.
  const bool has_times = !group.is_judged_by_steps();
  const std::uint64_t late = has_times ? group.growth.late_after_burst() : 0;
  const std::uint64_t survivors = has_times ? group.growth.survivors - late : group.by_step.count;
  row.survivors = std::min(survivors, group.count);
  if (has_times && survivors != 0)
    row.last_survivor_ns =
        late != 0 ? group.growth.last_early_survivor_ns : group.growth.last_survivor_ns;
  if (group.judged_growth().growing())
    row.growth_bytes_per_minute = group.growth.bytes_per_minute();
  if (!group.is_judged_by_steps()) return;
  row.first_step = group.by_step.first_ns;
  row.growth_bytes_per_step = group.by_step.bytes_per_unit();
}

// Sorts the groups by bytes, then by count, largest first.
void sort_groups(std::vector<LeakGroup>&);

// The end of a process that has ended.
struct EndOfRun {
  std::uint64_t end_ns = 0;  // time of the process's end, in ns since its start
  // True if the process crashed or aborted, or ended with an exit status other than 0. False if a
  // signal ended it that another process may have sent, such as SIGTERM.
  bool is_failure = false;
};

// Number of passes of leak_groups() and of live_groups() over the records of allocations.
inline constexpr std::size_t passes_of_groups = 3;

// Returns the groups of allocations (stack, function, kind, device) of a process that has ended:
// those with live allocations, and those with allocations that the end of a context released. A
// group may occur once in each role. Sorted by bytes, then by count, largest first. Adds all groups
// of the ledger to `sums`, the sums by kind and device.
// Reads the records of allocations several times, because Growth needs the time of each group's
// oldest live allocation first. `done`: is called for each row of the table of records, also for
// unused ones, in each of the passes_of_groups passes.
std::vector<LeakGroup> leak_groups(
    const ledger::Reader&, const EndOfRun&, ledger::GroupSums& sums, RowDone done = [] {});
// Returns the groups of allocations (stack, function, kind, device) of a process that still runs:
// those with live allocations, and those with allocations that the end of a context released.
// Sorted by bytes, then by count, largest first. Counts and bytes come from the groups' counters,
// since the records of single allocations change while they are read. The records only give times
// and addresses. `end_ns`: present time, in ns since the process's start. Adds all groups of the
// ledger to `sums`, the sums by kind and device. `done`: as for leak_groups().
std::vector<LeakGroup> live_groups(
    const ledger::Reader&, std::uint64_t end_ns, ledger::GroupSums& sums, RowDone done = [] {});

// Returns the sums over all groups: bytes and number of live allocations (the leaks), bytes of
// suppressed ones, and bytes that the ends of contexts released.
model::Leaks leaks_of(const std::vector<LeakGroup>&);
// Calls the last parameter, with a row of the report, for each of the groups of allocations, which
// are the result of leak_groups() or live_groups(). CallFrames::name_all() must have been called.
void put_leak_groups(const ledger::Reader&, const std::vector<LeakGroup>&, const CallFrames&,
                     Put<model::LeakGroup>);

}  // namespace cuwarden
