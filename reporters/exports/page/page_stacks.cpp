#include "reporters/exports/page/page_stacks.hpp"

#include <algorithm>

#include "reporters/labels/report_frames.hpp"
#include "reporters/labels/users_frame.hpp"
#include "reporters/owners/short_names.hpp"
#include "reporters/text/elements/text_elements.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {

PageStacks::PageStacks() : parents_(1), node_frames_(1), rows_(1) {
  text("");
  frame_numbers_[frames_.emplace_back()] = 0;
  row_numbers_[rows_.front()] = 0;
}

std::uint32_t PageStacks::text(std::string_view words) {
  const auto [known, is_new] =
      text_numbers_.try_emplace(std::string(words), static_cast<std::uint32_t>(texts_.size()));
  if (is_new) texts_.emplace_back(words);
  return known->second;
}

std::uint32_t PageStacks::frame(const IndexedReport& report, const model::Frame& frame) {
  const std::string module = report.module_name(frame.module);
  std::string function = frame.function.value_or("");
  if (function.empty()) {
    function = module.empty() ? frame.address.value_or("unknown code")
                              : module + "+" + address_text(frame.offset.value_or(0));
  }
  const std::uint32_t flags = (frame.language == "python" ? 1u : 0u) + (frame.inlined ? 2u : 0u);
  constexpr std::uint64_t most_lines = UINT32_MAX;
  const Frame row = {text(function),
                     text(short_name(function)),
                     text(frame.file.value_or("")),
                     text(module),
                     text(frame.library.value_or("")),
                     static_cast<std::uint32_t>(std::min(frame.line.value_or(0), most_lines)),
                     flags};
  const auto [known, is_new] =
      frame_numbers_.try_emplace(row, static_cast<std::uint32_t>(frames_.size()));
  if (is_new) frames_.push_back(row);
  return known->second;
}

std::uint32_t PageStacks::node(std::uint32_t parent, std::uint32_t frame) {
  const auto [known, is_new] = node_numbers_.try_emplace(
      std::uint64_t{parent} << 32 | frame, static_cast<std::uint32_t>(parents_.size()));
  if (is_new) {
    parents_.push_back(parent);
    node_frames_.push_back(frame);
  }
  return known->second;
}

std::uint32_t PageStacks::stack(const std::vector<std::uint32_t>& frames, std::size_t users,
                                bool truncated) {
  if (frames.empty()) return 0;
  Row row;
  for (auto outer = frames.rbegin(); outer != frames.rend(); ++outer)
    row.node = node(row.node, *outer);
  row.users = static_cast<std::uint32_t>(users);
  row.truncated = truncated;
  const auto [known, is_new] =
      row_numbers_.try_emplace(row, static_cast<std::uint32_t>(rows_.size()));
  if (is_new) rows_.push_back(row);
  return known->second;
}

void PageStacks::add_to(PageJson& page) const {
  page.add("strings", page_column(texts_, [](const std::string& text) { return text; }));
  PageJson frames("{}");
  constexpr const char* names[] = {"name", "short", "file", "module", "library", "line", "flags"};
  static_assert(std::size(names) == std::tuple_size_v<Frame>);
  for (std::size_t i = 0; i < std::size(names); ++i)
    frames.add(names[i], page_column(frames_, [i](const Frame& frame) { return frame[i]; }));
  page.add("frames", frames.text());
  // A node is most often made right after its parent, and a stack's innermost node after those of
  // the stack before: small differences are compressed well.
  std::uint32_t at = 0;
  PageJson nodes("{}");
  nodes.add("up", page_column(parents_, [&at](std::uint32_t parent) { return at++ - parent; }));
  nodes.add("frame", page_column(node_frames_, [](std::uint32_t frame) { return frame; }));
  page.add("nodes", nodes.text());
  std::int64_t last = 0;
  PageJson stacks("{}");
  stacks.add("step", page_column(rows_, [&last](const Row& row) {
               return row.node - std::exchange(last, std::int64_t{row.node});
             }));
  stacks.add("users", page_column(rows_, [](const Row& row) { return row.users; }));
  stacks.add("truncated", page_column(rows_, [](const Row& row) { return row.truncated; }));
  page.add("stacks", stacks.text());
}

std::uint32_t StacksOfReport::number_of(model::MaybeId id) {
  if (!id) return 0;
  const auto [known, is_new] = numbers_.try_emplace(*id, 0);
  const model::Stack* const stack = is_new ? report_.stack(id) : nullptr;
  if (stack != nullptr) known->second = added(*stack);
  return known->second;
}

std::uint32_t StacksOfReport::added(const model::Stack& stack) {
  std::vector<NamedFrame> named;
  std::vector<std::uint32_t> frames;
  for (const model::Id id : stack.frames) {
    const model::Frame* const row = report_.frame(id);
    if (row == nullptr) continue;
    const model::Module* const module = report_.module(row->module);
    named.push_back(named_frame(*row, module == nullptr ? std::string_view() : module->path));
    const auto [known, is_new] = frames_.try_emplace(id, 0);
    if (is_new) known->second = page_.frame(report_, *row);
    frames.push_back(known->second);
  }
  return page_.stack(frames, users_frame(named).value_or(0), stack.truncated);
}

}  // namespace cuwarden
