#include "tools/cuwarden/top/live/live_lists.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "tools/cuwarden/top/live/process_state.hpp"
#include "tools/cuwarden/top/top_figures.hpp"

namespace cuwarden {
namespace {

constexpr std::array process_orders{LiveOrder::pid,    LiveOrder::bytes, LiveOrder::peak,
                                    LiveOrder::growth, LiveOrder::rate,  LiveOrder::age,
                                    LiveOrder::text};
constexpr std::array stack_orders{LiveOrder::bytes, LiveOrder::count,       LiveOrder::growth,
                                  LiveOrder::rate,  LiveOrder::allocations, LiveOrder::text};

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

// True if the text has the part, in small or capital letters.
bool contains(std::string_view text, std::string_view part) {
  const auto found = std::search(text.begin(), text.end(), part.begin(), part.end(),
                                 [](char left, char right) { return lower(left) == lower(right); });
  return found != text.end() || part.empty();
}

bool matches(const LiveProcess& process, std::string_view filter) {
  return contains(program_text(process.row), filter) ||
         contains(std::to_string(process.row.pid), filter) ||
         contains(process.row.user.value_or(""), filter) || contains(state_text(process), filter);
}

bool matches(const LiveStack& stack, std::string_view filter) {
  return contains(stack.location, filter) || contains(stack.module, filter) ||
         contains(stack.row.api.value_or(""), filter) ||
         contains(memory_text(stack.row.kind, stack.row.device), filter);
}

// Returns the figures by which the list is sorted, from the highest on: the second counts if the
// first is equal.
std::pair<std::int64_t, std::int64_t> rank_of(const ProcessRow& row, LiveOrder order) {
  const auto figure = [](const model::Figure& value) {
    return static_cast<std::int64_t>(value.value_or(0));
  };
  switch (order) {
    case LiveOrder::peak:
      return {figure(row.peak_bytes), 0};
    case LiveOrder::growth:
      return {row.growth_bytes_per_minute.value_or(0), 0};
    case LiveOrder::rate:
      return {row.allocations_per_minute.value_or(0), 0};
    case LiveOrder::age:
      return {figure(row.running_ns), 0};
    case LiveOrder::pid:
      return {-row.pid, 0};
    default:
      return {figure(row.device_bytes), figure(row.host_bytes)};
  }
}

std::int64_t rank_of(const StackRow& row, LiveOrder order) {
  const auto figure = [](const model::Figure& value) {
    return static_cast<std::int64_t>(value.value_or(0));
  };
  switch (order) {
    case LiveOrder::count:
      return figure(row.live_count);
    case LiveOrder::growth:
      return row.growth_bytes_per_minute.value_or(0);
    case LiveOrder::rate:
      return row.allocations_per_minute.value_or(0);
    case LiveOrder::allocations:
      return figure(row.allocations);
    default:
      return figure(row.live_bytes);
  }
}

// True if `left` comes before `right` by the figure, from the highest on, or by the text.
template <class Row, class TextOf>
bool comes_before(const Row& left, const Row& right, const LiveList& list, const TextOf& text) {
  const auto& [first, second] = list.reversed ? std::tie(right, left) : std::tie(left, right);
  if (list.order == LiveOrder::text) return text(first) < text(second);
  return rank_of(first.row, list.order) > rank_of(second.row, list.order);
}

void add_figure(const model::Figure& added, model::Figure& sum) {
  if (added) sum = sum.value_or(0) + *added;
}
void add_figure(const model::SignedFigure& added, model::SignedFigure& sum) {
  if (added) sum = sum.value_or(0) + *added;
}

// Adds a stack's figures to those of a line that folds several.
void fold_into(const LiveStack& stack, LiveStack& line) {
  const StackRow& row = stack.row;
  StackRow& sum = line.row;
  if (line.stacks == 0) {
    sum.pid = row.pid;
    sum.kind = row.kind;
    sum.device = row.device;
    sum.api = row.api;
    line.module = stack.module;
  }
  if (std::tie(sum.kind, sum.device) != std::tie(row.kind, row.device)) {
    sum.kind.clear();
    sum.device.reset();
  }
  if (sum.api != row.api) sum.api.reset();
  if (line.module != stack.module) line.module.clear();
  ++line.stacks;
  add_figure(row.live_bytes, sum.live_bytes);
  add_figure(row.live_count, sum.live_count);
  add_figure(row.allocations, sum.allocations);
  add_figure(row.growth_bytes_per_minute, sum.growth_bytes_per_minute);
  add_figure(row.allocations_per_minute, sum.allocations_per_minute);
  sum.keeps_growing = sum.keeps_growing || row.keeps_growing;
  add_figure(row.keeps_growing_bytes_per_minute, sum.keeps_growing_bytes_per_minute);
  add_figure(row.keeps_growing_bytes_per_step, sum.keeps_growing_bytes_per_step);
  if (row.keeps_growing_since_step)
    sum.keeps_growing_since_step =
        std::min(sum.keeps_growing_since_step.value_or(UINT64_MAX), *row.keeps_growing_since_step);
}

}  // namespace

std::string key_of(const LiveStack& stack) {
  return stack.group != 0 ? std::to_string(stack.group) : "of " + stack.location;
}

std::string fold_text(LiveFold fold, const LiveStack& stack) {
  switch (fold) {
    case LiveFold::module:
      return stack.module.empty() ? "unknown module" : stack.module;
    case LiveFold::call:
      return stack.row.api.value_or("unknown call");
    case LiveFold::kind:
      return memory_text(stack.row.kind, stack.row.device);
    default:
      return {};
  }
}

std::vector<const LiveProcess*> listed_processes(const LiveState& state, const LiveData& data) {
  std::vector<const LiveProcess*> listed;
  for (const LiveProcess& process : data.processes)
    if (matches(process, state.processes.filter)) listed.push_back(&process);
  std::ranges::stable_sort(listed, [&](const LiveProcess* left, const LiveProcess* right) {
    if (left->row.ended != right->row.ended) return right->row.ended;
    return comes_before(*left, *right, state.processes,
                        [](const LiveProcess& process) { return program_text(process.row); });
  });
  return listed;
}

ListedStacks listed_stacks(const LiveState& state, const LiveData& data) {
  ListedStacks listed;
  std::map<std::string, LiveStack*> folded;
  for (const LiveStack& stack : data.stacks) {
    if (!matches(stack, state.stacks.filter)) continue;
    if (fold_text(state.within_fold, stack) != state.within) continue;
    if (state.fold == LiveFold::stack) {
      listed.lines.push_back(&stack);
      continue;
    }
    LiveStack*& line = folded[fold_text(state.fold, stack)];
    if (line == nullptr) {
      line = &listed.folded.emplace_back();
      line->location = fold_text(state.fold, stack);
      line->stacks = 0;
      listed.lines.push_back(line);
    }
    fold_into(stack, *line);
  }
  const bool by_growth = state.stacks.order == LiveOrder::growth && !state.stacks.reversed;
  std::ranges::stable_sort(listed.lines, [&](const LiveStack* left, const LiveStack* right) {
    // Growth of a few seconds means less than that of a minute.
    if (by_growth && left->row.keeps_growing != right->row.keeps_growing)
      return left->row.keeps_growing;
    return comes_before(*left, *right, state.stacks,
                        [](const LiveStack& stack) { return std::string_view(stack.location); });
  });
  return listed;
}

void find_selected(const std::vector<std::string>& keys, LiveList& list) {
  if (list.selected.empty() || keys.empty()) {
    list.index = 0;
    list.selected.clear();
    return;
  }
  const auto found = std::ranges::find(keys, list.selected);
  list.index = found != keys.end() ? static_cast<std::size_t>(found - keys.begin())
                                   : std::min(list.index, keys.size() - 1);
  list.selected = keys[list.index];
}

std::vector<std::string> listed_keys(const LiveState& state, const LiveData& data) {
  std::vector<std::string> keys;
  if (state.page == LivePage::processes) {
    for (const LiveProcess* const process : listed_processes(state, data))
      keys.push_back(key_of(process->row));
  } else if (state.page == LivePage::process) {
    const ListedStacks listed = listed_stacks(state, data);
    for (const LiveStack* const stack : listed.lines) keys.push_back(key_of(*stack));
  }
  return keys;
}

std::span<const LiveOrder> orders_of(LivePage page) {
  if (page == LivePage::processes) return process_orders;
  return stack_orders;
}

bool needs_all_names(const LiveState& state) {
  return !state.stacks.filter.empty() || state.stacks.order == LiveOrder::text ||
         state.fold == LiveFold::module || state.fold == LiveFold::call ||
         state.within_fold == LiveFold::module || state.within_fold == LiveFold::call;
}

}  // namespace cuwarden
