#include "reporters/tables/groups/call_frames.hpp"

#include <sys/stat.h>

#include <algorithm>

#include "reporters/files/file_status.hpp"
#include "reporters/symbols/naming.hpp"
#include "reporters/symbols/python_lines.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {

std::string_view setting_of(const ledger::Reader& reader, std::string_view variable) {
  for (std::uint64_t row = 1; row < reader.rows(ledger::RegionId::settings); ++row)
    if (const auto setting = reader.setting(row); setting && setting->name == variable)
      return setting->value;
  return {};
}

std::uint32_t CallFrames::module_of(const ledger::ModuleView& view) {
  const std::uint32_t file = view.file.value == 0 ? view.id.value : view.file.value;
  if (modules_.contains(file)) return file;
  // The dynamic linker gives the program itself an empty name.
  modules_[file] = {std::string(view.path.empty() ? reader_.process().program : view.path),
                    hexadecimal(view.build_id)};
  return file;
}

void CallFrames::add_other_modules() {
  for (std::uint64_t row = 1; row < reader_.rows(ledger::RegionId::modules); ++row)
    if (const auto module = reader_.module(row)) module_of(*module);
}

void CallFrames::add_stack(StackId id) {
  if (id.value == 0) return;
  const auto stack = reader_.stack(id.value);
  if (!stack || stacks_.contains(id.value)) return;
  // A writer's stacks never share frames. A damaged ledger whose stacks do is not walked without
  // end.
  const std::uint64_t frames = reader_.rows(ledger::RegionId::frames);
  if (stack->frames.size() > frames - std::min(frames, walked_)) return;
  walked_ += stack->frames.size();
  stacks_.insert(id.value);
  for (const ledger::Frame address : stack->frames) {
    const auto [known, is_new] =
        locations_by_address_.try_emplace({address, stack->module_epoch}, 0u);
    if (!is_new) continue;
    Location location{.offset = address};
    if (const auto module = ledger::is_python_frame(address)
                                ? std::nullopt
                                : reader_.module_at(address, stack->module_epoch)) {
      location.module = module_of(*module);
      location.offset = address - module->base;
    }
    const auto [same, first] = locations_by_offset_.try_emplace(
        {location.module, location.offset}, static_cast<std::uint32_t>(locations_.size()));
    if (first) locations_.push_back(location);
    known->second = same->second;
  }
}

std::string_view CallFrames::intern(std::string text) {
  if (text.empty()) return {};
  return *texts_.insert(std::move(text)).first;  // nodes of a set do not move
}

NamedFrame CallFrames::python_row(std::uint64_t frame) {
  NamedFrame row{.offset = frame, .is_python = true};
  const auto code = reader_.python_code(ledger::python_row_of(frame));
  if (!code) return row;
  row.function = intern(std::string(code->function));
  row.file = intern(std::string(code->file));
  // Each frame goes through its function's table. The tables of a damaged ledger may be long.
  constexpr std::uint64_t most_table_bytes = std::uint64_t{256} << 20;
  table_bytes_ += code->lines.size();
  if (table_bytes_ > most_table_bytes) return row;
  row.line = python_line(*code, ledger::python_instruction_of(frame));
  return row;
}

std::vector<CallFrames::ModuleLocations> CallFrames::locations_by_module() const {
  std::vector<ModuleLocations> modules;
  // Sorted by module and then by offset.
  for (const auto& [key, location] : locations_by_offset_) {
    const auto [module, offset] = key;
    if (modules.empty() || modules.back().module != module) {
      modules.emplace_back().module = module;
      struct stat status {};
      if (module != 0 && status_at(AT_FDCWD, modules_.at(module).path.c_str(), status, 0) == 0) {
        modules.back().file_bytes = static_cast<std::uint64_t>(status.st_size);
      }
    }
    modules.back().offsets.push_back(offset);
    modules.back().locations.push_back(location);
  }
  return modules;
}

void CallFrames::name_all(Naming* naming, std::vector<std::string>& reasons,
                          FunctionRef<void(std::size_t done, std::size_t all)> told) {
  std::vector<ModuleLocations> modules = locations_by_module();
  // Small files come first, so that as many as possible are named if the time does not suffice.
  std::vector<ModuleLocations*> by_size;
  for (ModuleLocations& module : modules) by_size.push_back(&module);
  std::ranges::stable_sort(by_size, {}, &ModuleLocations::file_bytes);
  if (naming != nullptr) {
    std::size_t done = 0;
    for (ModuleLocations* const module : by_size) {
      told(done++, by_size.size());
      if (module->module == 0) continue;
      const ModuleRow& row = modules_[module->module];
      module->named = naming->name(row.path, row.build_id, module->offsets);
    }
    for (std::string& reason : naming->take_reasons()) reasons.push_back(std::move(reason));
  }
  for (ModuleLocations& module : modules) {
    auto& named = module.named.frames;
    named.resize(module.offsets.size());
    for (std::size_t i = 0; i < named.size(); ++i) {
      Location& entry = locations_[module.locations[i]];
      entry.first_frame = static_cast<std::uint32_t>(frames_.size()) + 1;
      if (module.module == 0 && ledger::is_python_frame(entry.offset)) {
        entry.frame_count = 1;
        frames_.push_back(python_row(entry.offset));
        continue;
      }
      if (named[i].empty()) named[i].emplace_back();
      entry.frame_count = static_cast<std::uint32_t>(named[i].size());
      for (SymbolisedFrame& frame : named[i]) {
        NamedFrame& row = frames_.emplace_back();
        row.module = module.module;
        if (module.module != 0) row.path = modules_.at(module.module).path;
        row.function = intern(std::move(frame.function));
        row.file = intern(std::move(frame.file));
        row.line = static_cast<std::uint64_t>(std::max(frame.line, 0));
        row.offset = entry.offset;
        row.inlined = frame.inlined;
      }
    }
  }
  name_libraries();
}

void CallFrames::name_libraries() {
  libraries_.emplace(setting_of(reader_, "CUWARDEN_LIBRARIES"));
  for (NamedFrame& frame : frames_) frame.library = libraries_->library_of(frame);
}

std::vector<NamedFrame> CallFrames::named_frames(model::MaybeId id) const {
  std::vector<NamedFrame> frames;
  if (const auto stack = id ? reader_.stack(*id) : std::nullopt)
    for (const std::uint32_t frame : frame_ids(*stack)) frames.push_back(frames_[frame - 1]);
  return frames;
}

std::vector<std::uint32_t> CallFrames::frame_ids(const ledger::StackView& stack) const {
  std::vector<std::uint32_t> ids;
  for (const ledger::Frame address : stack.frames) {
    const auto known = locations_by_address_.find({address, stack.module_epoch});
    if (known == locations_by_address_.end()) continue;
    const Location& location = locations_[known->second];
    for (std::uint32_t i = 0; i < location.frame_count; ++i)
      ids.push_back(location.first_frame + i);
  }
  return ids;
}

std::uint32_t CallFrames::innermost_module(const ledger::StackView& stack,
                                           FunctionRef<bool(std::string_view path)> accepts) const {
  for (const ledger::Frame address : stack.frames) {
    const auto known = locations_by_address_.find({address, stack.module_epoch});
    if (known == locations_by_address_.end()) continue;
    const std::uint32_t module = locations_[known->second].module;
    if (module != 0 && accepts(modules_.at(module).path)) return module;
  }
  return 0;
}

void CallFrames::put_stacks(Put<model::Stack> put) const {
  for (const std::uint32_t id : stacks_) {
    if (const auto stack = reader_.stack(id)) put({id, frame_ids(*stack), stack->truncated});
  }
}

void CallFrames::put_frames(Put<model::Frame> put) const {
  model::Frame row;
  for (const NamedFrame& frame : frames_) {
    ++row.id;
    row.language = frame.is_python ? "python" : "native";
    row.function = model::text_or_null(frame.function);
    row.file = model::text_or_null(frame.file);
    row.line = frame.line > 0 ? model::Figure(frame.line) : std::nullopt;
    row.inlined = frame.inlined;
    row.library = model::text_or_null(frame.library);
    // Native code without a file (compiled at run time) is identified by its address.
    const bool in_module = frame.module != 0;
    row.module = in_module ? model::MaybeId(frame.module) : std::nullopt;
    row.offset = in_module ? model::Figure(frame.offset) : std::nullopt;
    row.address =
        in_module || frame.is_python ? std::nullopt : model::Text(address_text(frame.offset));
    put(row);
  }
}

void CallFrames::put_modules(Put<model::Module> put) const {
  for (const auto& [id, file] : modules_) put({id, file.path, model::text_or_null(file.build_id)});
}

}  // namespace cuwarden
