// Reads the tables of code: call stacks, modules and Python functions.
#include <algorithm>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/ledger/read/reader_rows.hpp"

namespace cuwarden::ledger {

std::optional<StackView> Reader::stack(std::uint64_t index) const noexcept {
  const auto* const found = published<Stack>(RegionId::stacks, index);
  if (found == nullptr) return std::nullopt;
  const std::uint64_t first = load_field(found->first), count = load_field(found->count);
  const std::uint64_t frames = rows(RegionId::frames);
  if (count > deepest_stack || first > frames || count > frames - first) return std::nullopt;
  StackView view;
  view.id = StackId{static_cast<std::uint32_t>(index)};
  if (count != 0) {
    const std::byte* const start = bytes_.data() + tables_[index_of(RegionId::frames)].offset;
    view.frames = {reinterpret_cast<const Frame*>(start) + first, count};
  }
  view.module_epoch = load_field(found->module_epoch);
  view.truncated = load_field(found->truncated) != 0;
  return view;
}

std::optional<PythonCodeView> Reader::python_code(std::uint64_t index) const noexcept {
  constexpr std::uint64_t longest_lines = std::uint64_t{1} << 20;
  const auto* const found = published<PythonCode>(RegionId::python_codes, index);
  if (found == nullptr) return std::nullopt;
  PythonCodeView view;
  view.file = text(found->file, longest_path);
  view.function = text(found->function, longest_path);
  view.first_line = load_field(found->first_line);
  view.lines = text(found->lines, longest_lines);
  view.lines_format = load_field(found->lines_format);
  return view;
}

std::optional<ModuleView> Reader::module(std::uint64_t index) const noexcept {
  const auto* const found = published<Module>(RegionId::modules, index);
  if (found == nullptr) return std::nullopt;
  ModuleView view;
  view.id = ModuleId{static_cast<std::uint32_t>(index)};
  view.file = ModuleId{load_field(found->file)};
  view.path = text(found->path, longest_path);
  view.build_id = {found->build_id, std::min<std::size_t>(load_field(found->build_id_bytes),
                                                          sizeof found->build_id)};
  view.base = load_field(found->base);
  view.start = load_field(found->start);
  view.end = load_field(found->end);
  view.loaded_epoch = load_field(found->loaded_epoch);
  view.unloaded_epoch = get(found->unloaded_epoch);
  return view;
}

std::optional<ModuleView> Reader::module_at(Frame frame, std::uint64_t epoch) const noexcept {
  const std::uint64_t count = rows(RegionId::modules);
  for (std::uint64_t i = 1; i < count; ++i) {
    const std::optional<ModuleView> found = module(i);
    if (found && frame >= found->start && frame < found->end && found->loaded_epoch <= epoch &&
        (found->unloaded_epoch == 0 || epoch < found->unloaded_epoch)) {
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace cuwarden::ledger
