// The call stacks that held most memory when a request was refused.
#pragma once

#include <vector>

#include "reporters/model/indexed_report.hpp"

namespace cuwarden {

// True if the holder's memory grew steadily before the refusal.
inline bool grows(const model::IncidentHolder& holder) {
  return holder.growth_bytes_per_minute.has_value();
}

// True if the row is about blocks that a framework has handed out, such as memory of tensors.
bool is_block(const model::IncidentHolder&);

// Returns the holders of the incident with one row for stacks that look alike. If locked
// slabs are the cause, the holders that lock most memory come first. Growing holders come before
// others, blocks of frameworks, which tell whose memory it is, before the rest, and larger holders
// before smaller ones.
std::vector<model::IncidentHolder> top_holders(const IndexedReport&, const model::Incident&);

// True if locked slabs are the cause of the incident and the report knows which holders lock them.
bool holders_lock_slabs(const model::Incident&, const std::vector<model::IncidentHolder>&);

}  // namespace cuwarden
