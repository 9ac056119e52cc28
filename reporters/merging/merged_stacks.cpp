#include "reporters/merging/merged_stacks.hpp"

namespace cuwarden {
namespace {

// Returns the id of the next row of a table whose ids start at 1.
template <class Rows>
model::Id next_id(const Rows& rows) {
  return static_cast<model::Id>(rows.size() + 1);
}

}  // namespace

model::MaybeId MergedStacks::module_id(const IndexedReport& report, model::MaybeId id) {
  const model::Module* const module = report.module(id);
  if (module == nullptr) return std::nullopt;
  const auto [known, is_new] =
      module_ids_.try_emplace({module->path, module->build_id}, next_id(modules_));
  if (is_new) modules_.push_back({known->second, module->path, module->build_id});
  return known->second;
}

model::Id MergedStacks::id_of(const IndexedReport& report, const model::Frame& frame) {
  const model::MaybeId module = module_id(report, frame.module);
  const auto [known, is_new] =
      frame_ids_.try_emplace(FrameKey(frame.function, frame.file, frame.line, frame.inlined, module,
                                      frame.offset, frame.language, frame.address, frame.library),
                             next_id(frames_));
  if (is_new) {
    frames_.push_back(frame);
    frames_.back().id = known->second;
    frames_.back().module = module;
  }
  return known->second;
}

model::MaybeId MergedStacks::add(const IndexedReport& report, model::MaybeId id) {
  const model::Stack* const stack = report.stack(id);
  if (stack == nullptr) return std::nullopt;
  model::Stack copy{next_id(stacks_), {}, stack->truncated};
  for (const model::Id frame_id : stack->frames)
    if (const model::Frame* const frame = report.frame(frame_id))
      copy.frames.push_back(id_of(report, *frame));
  stacks_.push_back(std::move(copy));
  return stacks_.back().id;
}

void MergedStacks::give(model::MergedReport& report) {
  report.stacks = std::move(stacks_);
  report.frames = std::move(frames_);
  report.modules = std::move(modules_);
}

}  // namespace cuwarden
