// The call stacks of a report, with named frames.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "reporters/model/report.hpp"
#include "reporters/owners/named_frame.hpp"

namespace cuwarden {

// Returns the paths of the report's modules, by module id. The texts belong to the report.
std::unordered_map<model::Id, std::string_view> module_paths(const model::Report&);

// Gives the named frames of a report's call stacks. The report must outlive the object; its stacks,
// frames and modules must not change meanwhile.
class NamedStacks {
 public:
  // Indexes the report's stacks, frames and modules. Keeps pointers into the report.
  explicit NamedStacks(const model::Report&);

  // Returns the frames of the stack, innermost first; none if the id is null or unknown. The texts
  // belong to the report.
  std::vector<NamedFrame> frames(model::MaybeId stack) const;

 private:
  // Rows of the table of stacks, by id.
  std::unordered_map<model::Id, const model::Stack*> stacks_;
  // Named frames, by id of the frame.
  std::unordered_map<model::Id, NamedFrame> frames_;
};

}  // namespace cuwarden
