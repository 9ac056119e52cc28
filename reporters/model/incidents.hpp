// Tables of the report about requests that were refused for lack of memory.
// report.schema.json describes each field.
#pragma once

#include <string>

#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden::model {

// An incident: a request that was refused for lack of memory, or a context that the device's
// compute mode forbade. Later refusals of the same call stack, function, kind and device count,
// too. Has the cause that was found for the first refusal.
struct Incident {
  Id id = 0;       // from 1; other tables name the incident by this number
  Figure time_ns;  // time of the first refusal, in ns since the process's start
  Text api;        // CUDA function that the program called; null: unknown
  Text kind;       // kind of memory, such as "device" or "pinned" (core/kind.hpp)
  // "memory" for allocations; otherwise the thing that needed memory, such as "context", "module"
  // or "launch".
  Text asked_for;
  // Bytes that the first refused call asked for, or that a launch needed for itself; null: the call
  // does not say.
  Figure bytes;
  MaybeId device;  // CUDA ordinal of the device; null: host memory was asked for
  Figure thread;   // kernel's thread id of the thread that was refused first
  MaybeId stack;   // row of the table `stacks`; null: no stack was recorded
  Text result;     // driver's error of the first refusal, such as "CUDA_ERROR_OUT_OF_MEMORY"
  // "rescued": all requests were served by rungs, cuwarden's attempts. "recovered_by_caller": all
  // were served in the end, some only when the program repeated them. "failed": others.
  // "under_way": none failed, but one was still being tried.
  std::string outcome;
  // Name of the rung (attempt of cuwarden's) that has served most of the refused requests; null: no
  // rung has served one.
  Text rescued_by;
  std::string verdict;  // name of the cause, such as "slab_fragmentation"; verdicts.def lists all
  Figure repeats;       // number of refusals of the incident after the first one
  // Number of refusals that the program saw, and after which the thread was served an equal request
  // within 10 s.
  Figure recovered_count;
  // Number of refused requests that a rung served, so that the program saw no refusal.
  Figure rescued_count;
  Figure failed_count;  // number of all refusals that the program saw, with recovered_count
  Figure last_ns;       // time of the last refusal, in ns since the process's start
  Figure last_bytes;    // bytes of the last refused request; null: the call does not say
  Proof proof;          // figures that prove the verdict (the cause), by name
  Text advice;          // a line of advice to the user about the cause; null: none
  CUWARDEN_FIELDS(id, time_ns, api, kind, asked_for, bytes, device, thread, stack, result, outcome,
                  rescued_by, verdict, repeats, recovered_count, rescued_count, failed_count,
                  last_ns, last_bytes, proof, advice)
  CUWARDEN_MAY_LACK(kind, asked_for, thread, result, rescued_by, recovered_count, rescued_count,
                    failed_count, last_ns, last_bytes)
};

// A number that was known at the first refusal of an incident, such as the device's free bytes.
// Facts that were unknown have no row.
struct IncidentFact {
  Id incident = 0;   // row of the table `incidents` about the refused request
  std::string fact;  // name of the fact, such as "free_bytes" (of the device) or "max_mappings"
  // Value of the fact: bytes if its name ends in "bytes"; otherwise a count, or the number that the
  // driver or the kernel has for a mode. Null: a limit that is not set.
  Figure value;
  CUWARDEN_FIELDS(incident, fact, value)
};

// A rung: one of cuwarden's attempts to serve the first refused request of an incident.
struct Rung {
  Id incident = 0;  // row of the table `incidents` about the refused request
  Figure order;     // position among the attempts for this incident, from 1
  // Name of the rung (attempt), such as "trim" or "spill", and its outcome, such as "served" or
  // "no_memory".
  std::string rung, outcome;
  Figure duration_ns;  // length of the attempt in nanoseconds
  // Name of the reclaimer (callback that empties a cache) that was called; null for all rungs but
  // `reclaim`.
  Text reclaimer;
  CUWARDEN_FIELDS(incident, order, rung, outcome, duration_ns, reclaimer)
};

// A rung (one of cuwarden's attempts to serve a request) that was left out for the first refused
// request of an incident. Rungs that were not reached, because another one had served the request,
// have no row.
struct RungLeftOut {
  Id incident = 0;   // row of the table `incidents` about the refused request
  std::string rung;  // name of the rung (attempt) that was left out, such as "trim" or "spill"
  // Name of the reason why the rung was left out, such as "turned_off" or "nothing_there";
  // report.schema.json lists them.
  std::string reason;
  // Environment variable that turns the rung off, such as "CUWARDEN_SPILL"; null for all values of
  // `reason` but "turned_off".
  Text setting;
  CUWARDEN_FIELDS(incident, rung, reason, setting)
};

// A call stack that held much memory, or locked much memory in slabs, at the first refusal of an
// incident.
struct IncidentHolder {
  Id incident = 0;      // row of the table `incidents` about the refused request
  MaybeId stack;        // row of the table `stacks`; null: no stack was recorded
  std::string kind;     // kind of memory, such as "device" or "pinned" (core/kind.hpp)
  Figure count, bytes;  // live allocations of this stack and kind; their bytes
  // Rate at which the bytes of these live allocations grew before the refusal, in bytes per minute;
  // null: they did not grow steadily.
  Figure growth_bytes_per_minute;
  // Unused bytes of slabs, the driver's 2 MiB pages of small requests, that could not go back to
  // the device because of the stack's live allocations. A slab's unused bytes count in equal parts
  // for each of its allocations. Null: unknown, or the stack is not among the four that locked
  // most.
  Figure slab_locked_bytes;
  CUWARDEN_FIELDS(incident, stack, kind, count, bytes, growth_bytes_per_minute, slab_locked_bytes)
  CUWARDEN_MAY_LACK(growth_bytes_per_minute, slab_locked_bytes)
};

}  // namespace cuwarden::model
