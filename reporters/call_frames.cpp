#include "reporters/call_frames.hpp"

#include <algorithm>

#include "reporters/symbolizer.hpp"

namespace cuwarden {
namespace {

std::string hexadecimal(std::span<const std::uint8_t> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::vector<std::uint8_t> from_hexadecimal(const std::string& text) {
  const auto digit = [](char letter) { return letter <= '9' ? letter - '0' : letter - 'a' + 10; };
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(digit(text[i]) * 16 + digit(text[i + 1])));
  }
  return bytes;
}

}  // namespace

std::uint32_t CallFrames::module_of(const ledger::ModuleView& view) {
  // The dynamic linker gives the program itself an empty name.
  std::string path(view.path.empty() ? reader_.process().program : view.path);
  std::string build_id = hexadecimal(view.build_id);
  const auto [place, is_new] = module_ids_.try_emplace({path, build_id}, view.id.value);
  if (is_new) modules_[view.id.value] = {std::move(path), std::move(build_id)};
  return place->second;
}

void CallFrames::add_stack(StackId id) {
  if (id.value == 0) return;
  const auto stack = reader_.stack(id.value);
  if (!stack || stacks_.contains(id.value)) return;
  // No two stacks of a writer share their frames: a ledger that claims more is not walked for ever.
  const std::uint64_t frames = reader_.rows(ledger::RegionId::frames);
  if (stack->frames.size() > frames - std::min(frames, walked_)) return;
  walked_ += stack->frames.size();
  stacks_.insert(id.value);
  for (const ledger::Frame address : stack->frames) {
    const auto [known, is_new] = places_by_address_.try_emplace({address, stack->module_epoch}, 0u);
    if (!is_new) continue;
    Place place{.offset = address};
    if (const auto module = reader_.module_at(address, stack->module_epoch)) {
      place.module = module_of(*module);
      place.offset = address - module->base;
    }
    const auto [same, first] = places_by_offset_.try_emplace(
        {place.module, place.offset}, static_cast<std::uint32_t>(places_.size()));
    if (first) places_.push_back(place);
    known->second = same->second;
  }
}

const std::string* CallFrames::intern(std::string text) {
  if (text.empty()) return nullptr;
  return &*texts_.insert(std::move(text)).first;  // nodes of a set do not move
}

void CallFrames::name_all(bool with_symbols, std::vector<std::string>& reasons) {
  // places_by_offset_ is sorted by module and then by offset: one module after the other.
  for (auto place = places_by_offset_.begin(); place != places_by_offset_.end();) {
    const std::uint32_t module = place->first.first;
    std::vector<std::uint64_t> offsets;
    const auto first = place;
    for (; place != places_by_offset_.end() && place->first.first == module; ++place) {
      offsets.push_back(place->first.second);
    }
    std::vector<std::vector<SymbolisedFrame>> named(offsets.size());
    if (with_symbols && module != 0) {
      const ModuleRow& row = modules_[module];
      const FileState state = check_file(row.path.c_str(), from_hexadecimal(row.build_id));
      if (state == FileState::readable) {
        named = symbolise(row.path.c_str(), offsets);
      } else if (state == FileState::changed) {
        reasons.push_back(row.path +
                          " is not the file that ran (its build id differs): its "
                          "functions are not named");
      } else if (row.path.starts_with('/')) {
        reasons.push_back(row.path + " could not be read: its functions are not named");
      }
    }
    auto target = first;
    for (std::size_t i = 0; i < offsets.size(); ++i, ++target) {
      Place& entry = places_[target->second];
      entry.first_frame = static_cast<std::uint32_t>(frames_.size()) + 1;
      if (named[i].empty()) named[i].emplace_back();
      entry.frame_count = static_cast<std::uint32_t>(named[i].size());
      for (SymbolisedFrame& frame : named[i]) {
        frames_.push_back({module, entry.offset, intern(std::move(frame.function)),
                           intern(std::move(frame.file)), frame.line, frame.inlined});
      }
    }
  }
}

std::vector<std::uint32_t> CallFrames::frame_ids(const ledger::StackView& stack) const {
  std::vector<std::uint32_t> ids;
  for (const ledger::Frame address : stack.frames) {
    const auto known = places_by_address_.find({address, stack.module_epoch});
    if (known == places_by_address_.end()) continue;
    const Place& place = places_[known->second];
    for (std::uint32_t i = 0; i < place.frame_count; ++i) ids.push_back(place.first_frame + i);
  }
  return ids;
}

}  // namespace cuwarden
