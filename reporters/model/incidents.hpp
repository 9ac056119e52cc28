// Tables of the report about requests that were refused for lack of memory.
// report.schema.json describes each field.
#pragma once

#include <string>

#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden::model {

// An incident: a request that was refused for lack of memory, or a context that the device's
// compute mode forbade. Later refusals of the same call stack, function, kind and device belong to
// the same incident. The verdict is about the first refusal. Fields of CUWARDEN_MAY_LACK are also
// null if the report is older than they are.
struct Incident {
  Id id = 0;       // number of the incident, from 1, by which other tables name it
  Figure time_ns;  // time of the first refusal, in ns since the process's start
  Text api;        // CUDA function whose call was refused; null: unknown
  Text kind;       // kind of memory, such as "device" or "pinned" (Kind)
  // "memory" for allocations; otherwise the thing that needed memory, such as "context", "module"
  // or "launch".
  Text asked_for;
  // Bytes that the first refused call asked for, or bytes that a refused launch needed for itself.
  // Null: the call does not say.
  Figure bytes;
  MaybeId device;  // CUDA ordinal of the device; null: host memory was asked for
  Figure thread;   // kernel's thread id of the thread that was refused first
  MaybeId stack;   // id of the call stack in the table `stacks`; null: no stack was recorded
  Text result;     // driver's error of the first refusal, such as "CUDA_ERROR_OUT_OF_MEMORY"
  // Outcome of all refused requests of the incident. "rescued": cuwarden's rungs (attempts) served
  // all of them. "recovered_by_caller": all were served in the end, but some only when the program
  // repeated them. "failed": at least one was not served. "under_way": none failed, but one was
  // still being tried.
  std::string outcome;
  // Name of the rung (attempt of cuwarden's) that has served most of the refused requests; null: no
  // rung has served one.
  Text rescued_by;
  std::string verdict;  // name of the cause, such as "slab_fragmentation"; verdicts.def lists all
  Figure repeats;       // number of refusals of the incident after the first one
  // Number of refusals that the program saw, but after which the same thread was served an equal
  // request within 10 s.
  Figure recovered_count;
  // Number of refused requests that a rung (attempt of cuwarden's) served, so that the program saw
  // no refusal.
  Figure rescued_count;
  // Number of all refusals that the program saw, those in recovered_count included.
  Figure failed_count;
  Figure last_ns;     // time of the last refusal, in ns since the process's start
  Figure last_bytes;  // bytes of the last refused request; null: the call does not say
  // Names and values of the figures and texts that prove `verdict`. Each verdict has its own names
  // (reporters/verdicts/proofs.hpp).
  Proof proof;
  Text advice;  // a line of advice to the user about the cause; null: none
  CUWARDEN_FIELDS(id, time_ns, api, kind, asked_for, bytes, device, thread, stack, result, outcome,
                  rescued_by, verdict, repeats, recovered_count, rescued_count, failed_count,
                  last_ns, last_bytes, proof, advice)
  CUWARDEN_MAY_LACK(kind, asked_for, thread, result, rescued_by, recovered_count, rescued_count,
                    failed_count, last_ns, last_bytes)
};

// A number that was known at the first refusal of an incident, such as the device's free bytes; the
// report calls it a fact. Facts that were unknown have no row.
struct IncidentFact {
  Id incident = 0;   // id of the refused request in the table `incidents`
  std::string fact;  // name of the fact, such as "free_bytes" (of the device) or "max_mappings"
  // Value of the fact: bytes if its name ends in "bytes"; otherwise a count, or the number by which
  // the driver or the kernel denotes a mode. Null: a limit that is not set.
  Figure value;
  CUWARDEN_FIELDS(incident, fact, value)
};

// One run of a rung: an attempt of cuwarden to serve the first refused request of an incident.
struct Rung {
  Id incident = 0;  // id of the refused request in the table `incidents`
  Figure order;     // position among the runs of rungs for the refused request, from 1
  // Name of the rung (attempt), such as "trim" or "spill", and its outcome, such as "served" or
  // "no_memory".
  std::string rung, outcome;
  Figure duration_ns;  // length of the rung's run in nanoseconds
  // Name of the reclaimer (callback that empties a cache) that was called; null for all rungs but
  // `reclaim`.
  Text reclaimer;
  CUWARDEN_FIELDS(incident, order, rung, outcome, duration_ns, reclaimer)
};

// A rung (attempt of cuwarden to serve a request) that was left out for the first refused request
// of an incident. A rung has no row if another one had served the request before its turn.
struct RungLeftOut {
  Id incident = 0;   // id of the refused request in the table `incidents`
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
  Id incident = 0;   // id of the refused request in the table `incidents`
  MaybeId stack;     // id of the call stack in the table `stacks`; null: no stack was recorded
  std::string kind;  // kind of memory, such as "device" or "pinned" (Kind)
  // Number and bytes of the stack's allocations of `kind` that were live at the refusal.
  Figure count, bytes;
  // Rate at which the bytes of these live allocations grew before the refusal, in bytes per minute;
  // null: they did not grow steadily.
  Figure growth_bytes_per_minute;
  // Unused bytes of slabs (the driver's 2 MiB pages of small requests) that could not go back to
  // the device because of the stack's live allocations. A slab's unused bytes are divided equally
  // among its live allocations. Null: unknown, or the stack is not among the four that locked most.
  Figure slab_locked_bytes;
  CUWARDEN_FIELDS(incident, stack, kind, count, bytes, growth_bytes_per_minute, slab_locked_bytes)
  CUWARDEN_MAY_LACK(growth_bytes_per_minute, slab_locked_bytes)
};

}  // namespace cuwarden::model
