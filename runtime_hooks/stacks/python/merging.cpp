#include "runtime_hooks/stacks/python/merging.hpp"

namespace cuwarden::stacks::python {

Merged merge(const NativeStack& native, const FrameChain& chain,
             std::span<const std::uint64_t> python, const PythonSymbols& symbols,
             std::span<std::uint64_t> frames) noexcept {
  Merged merged{.truncated = native.truncated || chain.truncated};
  const auto add = [&](std::uint64_t frame) {
    if (merged.count < frames.size())
      frames[merged.count++] = frame;
    else
      merged.truncated = true;
  };
  std::uint32_t group = 0, next = 0;
  const auto add_group = [&] {
    for (; next < chain.group[group].end; ++next) add(python[next]);
    ++group;
  };
  for (std::size_t i = 0; i < native.frames.size(); ++i) {
    const std::uint64_t pc = native.frames[i], sp = native.stack_pointers[i];
    const std::uint64_t end =
        i + 1 < native.frames.size() ? native.stack_pointers[i + 1] : native.outermost_sp;
    const bool is_evaluation = symbols.is_evaluation(pc);
    const auto runs = [&](const FrameChain::Group& one) {
      return one.inside == 0 ? is_evaluation : one.inside >= sp && one.inside < end;
    };
    if (group < chain.groups && runs(chain.group[group])) {
      add_group();
      continue;
    }
    const bool is_interpreter = symbols.file.contains(pc);
    if (!is_interpreter || !symbols.has_interpreter_alone) add(pc);
  }
  while (group < chain.groups) add_group();
  return merged;
}

}  // namespace cuwarden::stacks::python
