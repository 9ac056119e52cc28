#include "reporters/text/headline/leak_headline.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "reporters/text/elements/merged_rows.hpp"
#include "reporters/text/elements/ranked_leaks.hpp"
#include "reporters/text/elements/text_stacks.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {

static_assert(passes_of_headline == passes_of_first_leak + 1, "the advice passes once more");

namespace {

// Sums the groups of each line of the program up. Lost groups, groups that only grow and other
// groups have sums of their own: a line that makes all memory of a program has some of each kind.
// Lines come in the order of main_leaks(). A group of an unknown line stays alone.
std::vector<LeakOfLine> summed_by_line(
    const IndexedReport& report, const std::vector<model::LeakGroup>& groups,
    RowDone done = [] {}) {
  std::vector<std::vector<const model::LeakGroup*>> parts;
  using Key = std::tuple<std::string, std::string, std::string, model::MaybeId, int>;
  std::map<Key, std::size_t> known;
  for (const model::LeakGroup& group : groups) {
    const CallingLocation line = calling_location(report, group.stack);
    std::size_t part = parts.size();
    if (!line.location.empty()) {
      const int rank = std::max(rank_of_leak(group), 1);
      part = known.try_emplace({line.file, line.location, group.kind, group.device, rank}, part)
                 .first->second;
    }
    if (part == parts.size()) parts.emplace_back();
    parts[part].push_back(&group);
    done();
  }
  std::vector<LeakOfLine> lines;
  for (const auto& part : parts) {
    LeakOfLine line{*part.front(), {}};
    for (const model::LeakGroup* group : part) line.stacks.push_back(group->stack);
    if (part.size() > 1) {
      merge_figures(report, part, line.sum);
      // The list of leaks judges the growth of each stack; the headline says the same.
      const bool grows = std::ranges::any_of(
          part, [](const model::LeakGroup* group) { return group->growth == "growing"; });
      line.sum.growth = grows ? "growing" : part.front()->growth;
    }
    lines.push_back(std::move(line));
  }
  std::ranges::stable_sort(lines, {}, [](const LeakOfLine& line) {
    return std::pair(rank_of_leak(line.sum), UINT64_MAX - line.sum.bytes.value_or(0));
  });
  return lines;
}

// Returns the function that ends objects of this kind, such as streams; null if the kind is one of
// memory.
const char* end_of_object(const std::string& kind) {
  if (kind == "stream") return "cudaStreamDestroy";
  if (kind == "module") return "cuModuleUnload";
  if (kind == "graph_exec") return "cudaGraphExecDestroy";
  if (kind == "context") return "cuCtxDestroy";
  return nullptr;
}

// Returns words for allocations of a line, such as "20 allocations of device memory (GPU 0), made
// at killed.cpp:27 in serve_request, growing". `count`: the words' beginning, a number with its
// noun, such as "20 allocations" or "2 of 5 allocations".
std::string made_words(const IndexedReport& report, const LeakOfLine& line,
                       const std::string& count) {
  const model::LeakGroup& group = line.sum;
  // Objects are counted by their name, such as "3 streams".
  std::string text = count;
  if (end_of_object(group.kind) == nullptr)
    text += " of " + memory_name(group.kind, group.device);
  else if (group.device)
    text += " (GPU " + std::to_string(*group.device) + ")";
  const std::string location = at_calling_location(report, group.stack);
  if (!location.empty()) text += ", made" + location;
  if (line.stacks.size() > 1) text += ", by " + human_count(line.stacks.size()) + " call stacks";
  if (group.growth == "growing") text += ", " + growth_words(group);
  return text;
}

// Returns the function that frees what the group's call has allocated; empty if there is none.
std::string freeing_function(const model::LeakGroup& group) {
  if (const char* const end = end_of_object(group.kind)) return end;
  const std::string api = group.api.value_or("");
  // Functions of the driver begin with "cu", those of the runtime with "cuda".
  const bool is_driver = api.starts_with("cu") && !api.starts_with("cuda");
  if (group.kind == "device" || group.kind == "managed")
    return is_driver ? "cuMemFree" : "cudaFree";
  if (group.kind == "pinned") return is_driver ? "cuMemFreeHost" : "cudaFreeHost";
  if (group.kind == "registered") return is_driver ? "cuMemHostUnregister" : "cudaHostUnregister";
  if (group.kind == "vmm") return "cuMemUnmap and cuMemRelease";
  if (group.kind == "stream_ordered") return is_driver ? "cuMemFreeAsync" : "cudaFreeAsync";
  if (group.kind == "array") return is_driver ? "cuArrayDestroy" : "cudaFreeArray";
  if (group.kind == "imported") return is_driver ? "cuIpcCloseMemHandle" : "cudaIpcCloseMemHandle";
  return "";
}

// Returns advice about a line of which some allocations are lost.
std::string advice_on_lost(const IndexedReport& report, const LeakOfLine& line, const Style& style,
                           RowDone done) {
  const model::LeakGroup& group = line.sum;
  const std::string function = freeing_function(group);
  if (function.empty()) return "";
  std::uint64_t gone = group.count.value_or(0);
  VisibleStacks visible(report, style);
  std::set<std::size_t> stacks;
  for (const model::MaybeId stack : line.stacks) {
    stacks.insert(visible.number_of(stack));
    done();
  }
  for (const model::LeakGroup& other : report->leak_groups)
    if (other.released_by && other.kind == group.kind && other.device == group.device &&
        stacks.contains(visible.number_of(other.stack)))
      gone += other.count.value_or(0);
  const std::uint64_t made = group.allocations.value_or(0), freed = made - std::min(made, gone);
  if (freed == 0)
    return "call " + function + (made == 1 ? " for it" : " for them") +
           ", since nothing frees what is made there";
  return "look for the path that skips " + function + ", since " + human_count(freed) + " of " +
         human_count(made) + " made there were freed";
}

}  // namespace

std::optional<LeakOfLine> first_leak(const IndexedReport& report, const Style& style,
                                     RowDone done) {
  constexpr std::uint64_t far_more = 100;
  std::vector<LeakOfLine> lines = summed_by_line(report, main_leaks(report, style, done), done);
  std::vector<model::LeakGroup> blocks = merged_blocks(report, style);
  std::erase_if(blocks, [](const model::LeakGroup& block) { return block.growth != "growing"; });
  for (LeakOfLine& line : summed_by_line(report, blocks)) lines.push_back(std::move(line));
  if (lines.empty()) return std::nullopt;
  const auto first = std::ranges::min_element(
      lines, {}, [](const LeakOfLine& line) { return rank_of_leak(line.sum); });
  const std::uint64_t least = std::max<std::uint64_t>(first->sum.bytes.value_or(0), 1);
  const auto largest = std::ranges::max_element(lines, {}, [](const LeakOfLine& line) {
    return line.sum.growth == "growing" ? line.sum.bytes.value_or(0) : 0;
  });
  const bool is_far_larger =
      largest->sum.growth == "growing" && largest->sum.bytes.value_or(0) / least >= far_more;
  return std::move(is_far_larger ? *largest : *first);
}

std::string held_words(const IndexedReport& report, const LeakOfLine& line) {
  return human_bytes(line.sum.bytes.value_or(0)) + " in " +
         made_words(report, line, counted(line.sum.count.value_or(0), line.sum.kind));
}

std::optional<Headline> headline_of_leaks(const IndexedReport& report, const Style& style,
                                          RowDone done) {
  const auto line = first_leak(report, style, done);
  if (!line || rank_of_leak(line->sum) > 2) return std::nullopt;
  const model::LeakGroup& group = line->sum;
  const std::uint64_t count = group.count.value_or(0), lost = group.lost_count.value_or(0);
  Headline headline{.gravity = Gravity::alarm,
                    .title = lost != 0 ? "LOST MEMORY" : "GROWING MEMORY"};
  if (lost != 0) {
    const std::string all = counted(count, group.kind);
    headline.sentence =
        ": " + human_bytes(group.lost_bytes.value_or(0)) + " in " +
        made_words(report, *line, lost < count ? human_count(lost) + " of " + all : all);
    headline.advice = advice_on_lost(report, *line, style, done);
  } else {
    headline.sentence = ": " + held_words(report, *line);
    headline.advice =
        "find the container or the object that keeps it, and free there what is needed no more";
    if (was_running(report)) headline.gravity = Gravity::caution;
  }
  return headline;
}

}  // namespace cuwarden
