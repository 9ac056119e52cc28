// A report whose rows can be found by the ids that other tables use.
#pragma once

#include <string>
#include <unordered_map>

#include "reporters/model/report.hpp"

namespace cuwarden {

// Owns a report and finds its stacks, frames and modules by id.
class IndexedReport {
 public:
  explicit IndexedReport(model::Report report);

  const model::Report& operator*() const { return report_; }
  const model::Report* operator->() const { return &report_; }

  // Return the row of table `stacks`, `frames` or `modules` with this id; null if the id is null or
  // no row has it. The row is owned by this object.
  const model::Stack* stack(model::MaybeId id) const;
  const model::Frame* frame(model::MaybeId id) const;
  const model::Module* module(model::MaybeId id) const;

  // Returns the file name, without folders, of the module (program or library) with this id; empty
  // if the id is null or no module has it.
  std::string module_name(model::MaybeId id) const;

 private:
  // Indices of rows in a table of the report, by the rows' ids. Unlike pointers, they stay valid
  // when the report is moved.
  using Positions = std::unordered_map<model::Id, std::size_t>;

  model::Report report_;
  Positions stacks_, frames_, modules_;
};

}  // namespace cuwarden
