// A report whose rows can be found by the ids that other tables use.
#pragma once

#include <string>
#include <unordered_map>

#include "reporters/model/report.hpp"

namespace cuwarden {

class IndexedReport {
 public:
  explicit IndexedReport(model::Report report);

  const model::Report& operator*() const { return report_; }
  const model::Report* operator->() const { return &report_; }

  // Each returns null if the id is null or no row has it.
  const model::Stack* stack(model::MaybeId id) const;
  const model::Frame* frame(model::MaybeId id) const;
  const model::Module* module(model::MaybeId id) const;

  // Returns the last part of a module's path; empty if it is unknown.
  std::string module_name(model::MaybeId id) const;

 private:
  // Positions of rows by id. They stay right where the report is moved.
  using Positions = std::unordered_map<model::Id, std::size_t>;

  model::Report report_;
  Positions stacks_, frames_, modules_;
};

}  // namespace cuwarden
