// The call stacks that held most memory when a request was refused.
#pragma once

#include <vector>

#include "reporters/model/indexed_report.hpp"

namespace cuwarden {

// True if the live memory of the holder (a call stack with allocations) grew steadily before the
// request was refused.
inline bool grows(const model::IncidentHolder& holder) {
  return holder.growth_bytes_per_minute.has_value();
}

// True if the row is about blocks that a framework has handed out, such as the memory of tensors.
bool is_block(const model::IncidentHolder&);

// Returns the call stacks that held memory when the incident's request was refused. Stacks that
// look alike in this style of the text report are one row, with their sums. If locked slabs are the
// cause of the incident, the stacks that lock most memory come first. Then growing ones come before
// others, and blocks of frameworks before other memory, since they show whose memory it is. Last,
// larger ones come before smaller ones.
std::vector<model::IncidentHolder> top_holders(const IndexedReport&, const model::Incident&,
                                               const Style&);

// True if locked slabs are the cause of the incident, and some of the given holders lock memory in
// slabs. Slabs are 2 MiB pages that the driver cuts small requests from; a live piece locks the
// rest.
bool holders_lock_slabs(const model::Incident&, const std::vector<model::IncidentHolder>&);

}  // namespace cuwarden
