#include "reporters/labels/named_stacks.hpp"

#include "reporters/labels/report_frames.hpp"

namespace cuwarden {

std::unordered_map<model::Id, std::string_view> module_paths(const model::Report& report) {
  std::unordered_map<model::Id, std::string_view> paths;
  for (const model::Module& module : report.modules) paths[module.id] = module.path;
  return paths;
}

NamedStacks::NamedStacks(const model::Report& report) {
  for (const model::Stack& stack : report.stacks) stacks_[stack.id] = &stack;
  std::unordered_map<model::Id, std::string_view> paths = module_paths(report);
  for (const model::Frame& frame : report.frames)
    frames_[frame.id] = named_frame(frame, paths[frame.module.value_or(0)]);
}

std::vector<NamedFrame> NamedStacks::frames(model::MaybeId id) const {
  std::vector<NamedFrame> named;
  const auto stack = id ? stacks_.find(*id) : stacks_.end();
  if (stack == stacks_.end()) return named;
  for (const model::Id frame_id : stack->second->frames)
    if (const auto frame = frames_.find(frame_id); frame != frames_.end())
      named.push_back(frame->second);
  return named;
}

}  // namespace cuwarden
