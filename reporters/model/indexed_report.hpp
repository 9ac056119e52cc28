// A report whose rows can be found by the ids that other tables use.
#pragma once

#include <string>
#include <unordered_map>

#include "reporters/model/report.hpp"

namespace cuwarden {

// Owns a report and finds its stacks, frames and modules by id.
class IndexedReport {
 public:
  // Takes ownership of the report, and indexes its stacks, frames and modules by id.
  explicit IndexedReport(model::Report report);

  // Returns the report, which this object owns.
  const model::Report& operator*() const { return report_; }
  // Gives access to the members of the report.
  const model::Report* operator->() const { return &report_; }

  // Returns the row of the report's table `stacks` with this id, which this object owns; null if
  // the id is null or no row has it.
  const model::Stack* stack(model::MaybeId id) const;
  // Returns the row of the report's table `frames` with this id, which this object owns; null if
  // the id is null or no row has it.
  const model::Frame* frame(model::MaybeId id) const;
  // Returns the row of the report's table `modules` with this id, which this object owns; null if
  // the id is null or no row has it.
  const model::Module* module(model::MaybeId id) const;

  // Returns the file name, without folders, of the module (program or library) with this id; empty
  // if the id is null or no module has it.
  std::string module_name(model::MaybeId id) const;

 private:
  // Indices of rows in a table of the report, by the rows' ids. Unlike pointers, they stay valid
  // when the report is moved.
  using Positions = std::unordered_map<model::Id, std::size_t>;

  model::Report report_;  // the report, which this object owns
  // Indices of the rows of the report's tables `stacks`, `frames` and `modules`, by the rows' ids.
  Positions stacks_, frames_, modules_;
};

}  // namespace cuwarden
