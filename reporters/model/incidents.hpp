// Tables of the report about refused requests. report.schema.json describes each field.
#pragma once

#include <string>

#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden::model {

// A request that was refused, with its repeats from the same call stack, and its verdict.
struct Incident {
  Id id = 0;
  Figure time_ns;  // of the first refusal
  Text api, kind, asked_for;
  Figure bytes;  // null: the call does not say
  MaybeId device;
  Figure thread;
  MaybeId stack;
  Text result;
  std::string outcome;
  Text rescued_by;
  std::string verdict;
  Figure repeats;
  Figure recovered_count, rescued_count, failed_count;  // parts of the repeats + 1 refusals
  Figure last_ns, last_bytes;
  Proof proof;
  Text advice;
  CUWARDEN_FIELDS(id, time_ns, api, kind, asked_for, bytes, device, thread, stack, result, outcome,
                  rescued_by, verdict, repeats, recovered_count, rescued_count, failed_count,
                  last_ns, last_bytes, proof, advice)
  CUWARDEN_MAY_LACK(kind, asked_for, thread, result, rescued_by, recovered_count, rescued_count,
                    failed_count, last_ns, last_bytes)
};

// A fact that was known at the first refusal of an incident.
struct IncidentFact {
  Id incident = 0;
  std::string fact;
  Figure value;  // null: there is no limit
  CUWARDEN_FIELDS(incident, fact, value)
};

// An attempt to serve the first refused request of an incident.
struct Rung {
  Id incident = 0;
  Figure order;
  std::string rung, outcome;
  Figure duration_ns;
  Text reclaimer;  // name of the reclaimer; null for all rungs but `reclaim`
  CUWARDEN_FIELDS(incident, order, rung, outcome, duration_ns, reclaimer)
};

// A call stack that held most at an incident.
struct IncidentHolder {
  Id incident = 0;
  MaybeId stack;
  std::string kind;
  Figure count, bytes;
  Figure growth_bytes_per_minute;  // null: it does not grow
  Figure slab_locked_bytes;        // null: not among the holders that lock most
  CUWARDEN_FIELDS(incident, stack, kind, count, bytes, growth_bytes_per_minute, slab_locked_bytes)
  CUWARDEN_MAY_LACK(growth_bytes_per_minute, slab_locked_bytes)
};

}  // namespace cuwarden::model
