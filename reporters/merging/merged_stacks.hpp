// The call stacks of the merged report, with the frames and modules that they need.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "reporters/model/indexed_report.hpp"
#include "reporters/model/merged_report.hpp"

namespace cuwarden {

// Copies call stacks of many reports into the tables of the merged report. A frame or a module that
// several stacks have is stored once.
class MergedStacks {
 public:
  // Copies a stack of the report, with its frames and their modules. Returns the id of the copy in
  // the merged tables; null if the report has no such stack.
  model::MaybeId add(const IndexedReport&, model::MaybeId stack);
  // Moves the tables of stacks, frames and modules into the merged report.
  void give(model::MergedReport&);

 private:
  // All fields of a frame but its id, by which equal frames are found. The module is an id of
  // modules_.
  using FrameKey = std::tuple<model::Text, model::Text, model::Figure, bool, model::MaybeId,
                              model::Figure, model::Text, model::Text, model::Text>;

  // Returns the id of the report's frame in frames_. Adds the frame if frames_ lacks it.
  model::Id id_of(const IndexedReport&, const model::Frame&);
  // Returns the id of the report's module in modules_. Adds the module if modules_ lacks it. Null
  // if the report has no such module.
  model::MaybeId module_id(const IndexedReport&, model::MaybeId module);

  std::vector<model::Stack> stacks_;
  std::vector<model::Frame> frames_;
  std::vector<model::Module> modules_;
  // Fields of a frame → its id in frames_.
  std::map<FrameKey, model::Id> frame_ids_;
  // Ids of modules_, by path and build id.
  std::map<std::pair<std::string, model::Text>, model::Id> module_ids_;
};

}  // namespace cuwarden
