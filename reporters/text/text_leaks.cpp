#include "reporters/text/text_leaks.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reporters/labels/library_memory.hpp"
#include "reporters/text/elements/leak_check.hpp"
#include "reporters/text/elements/merged_rows.hpp"
#include "reporters/text/elements/moments.hpp"
#include "reporters/text/elements/ranked_leaks.hpp"
#include "reporters/text/elements/text_elements.hpp"
#include "reporters/text/elements/text_stacks.hpp"
#include "reporters/text/text_history.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {
namespace {

// Most lines for the frames of one stack; the report has all frames.
constexpr std::size_t most_leak_lines = 24;

// Returns words for how often an old allocation of a growing group is never freed, such as ", 1 in
// 3 is never freed". Empty: none is, or more than half of them are. Young allocations do not count,
// since most may still have been in use.
std::string share_of(const model::LeakGroup& group) {
  const std::uint64_t live = group.count.value_or(0);
  const std::uint64_t kept = std::min(group.survivors.value_or(live), live);
  const std::uint64_t made = group.allocations.value_or(0), young = live - kept;
  if (kept == 0 || made < young + 2 * kept) return "";
  return ", 1 in " + human_count((made - young + kept / 2) / kept) + " is never freed";
}

// Returns words for a group of many survivors that were made in a part of the time.
std::string burst_of(const model::LeakGroup& group) {
  const std::uint64_t first = group.first_ns.value_or(0);
  const std::uint64_t last =
      std::max(group.last_survivor_ns.value_or(group.last_ns.value_or(0)), first);
  const std::uint64_t count = group.count.value_or(0), old = group.survivors.value_or(count);
  std::string rest = ", then none";
  // A few young ones were probably in use at the end.
  if (count > old) rest = ", then few more";
  if (count > old + old / 8) rest = ", then " + human_count(count - old) + " younger ones";
  return "burst: " + human_count(old) +
         (last == first ? " at one moment" : " in " + human_time(last - first)) + rest;
}

// Returns words for the growth of a group that does not grow.
std::string kept_of(const model::LeakGroup& group) {
  if (group.growth == "burst") return burst_of(group);
  return group.growth == "steady" ? "steady" : "one time";
}

// Returns words for what a search for pointers found of the group; empty: nothing is known.
std::string reachability_of(const model::LeakGroup& group, const Style& style) {
  const std::uint64_t count = group.count.value_or(0), lost = group.lost_count.value_or(0);
  if (lost != 0)
    return style.red(lost >= count ? "lost"
                                   : human_count(lost) + " of " + human_count(count) + " lost");
  if (group.interior_count.value_or(0) != 0) return "only pointers into its middle";
  const std::uint64_t reachable = group.reachable_count.value_or(0);
  if (reachable == 0) return "";
  return reachable >= count ? "reachable"
                            : human_count(reachable) + " of " + human_count(count) + " reachable";
}

// Widths of the columns in which a list of leaks begins, so that its numbers stand flush right.
struct ListWidths {
  std::size_t rank = 3, bytes = 0;  // rank: with the full stop behind it
};

// Returns the widths for a list of these groups. `ranks`: their number.
ListWidths widths_of(const std::vector<model::LeakGroup>& groups, std::size_t ranks) {
  ListWidths widths;
  widths.rank = std::max(widths.rank, std::to_string(ranks).size() + 1);
  for (std::size_t i = 0; i < ranks; ++i)
    widths.bytes = std::max(widths.bytes, human_bytes(groups[i].bytes.value_or(0)).size());
  return widths;
}

void add_group(const IndexedReport& report, const model::LeakGroup& group, std::size_t rank,
               const ListWidths& widths, const Style& style, std::string& text) {
  const std::size_t bytes_width = human_bytes(group.bytes.value_or(0)).size();
  text += "\n" + padded(std::to_string(rank) + ".", widths.rank, true) + " " +
          std::string(widths.bytes - bytes_width, ' ');
  add_leak_words(report, group, style, text);
  text += "\n";
  add_stack(report, group.stack, most_leak_lines, style, text);
  if (const LibraryMemory asked = library_memory(report, group);
      asked.use == LibraryUse::cache && !holds_listed_blocks(report, group))
    text += style.dim("       grew the cache of " + asked.library +
                      ", which may hold other lines' memory there now") +
            "\n";
  std::string life;
  if (group.first_ns) {
    const std::uint64_t first = group.first_ns.value_or(0), last = group.last_ns.value_or(0);
    const std::string from = short_moment(report, first), to = short_moment(report, last);
    life = from == to ? "made at " + from : "made between " + from + " and " + to;
    const std::uint64_t made = group.allocations.value_or(0);
    if (made > group.count.value_or(0)) {
      const std::uint64_t freed = made - group.count.value_or(0);
      life += "; " + human_count(freed) + " of " + human_count(made) + " made here " +
              (freed == 1 ? "was freed" : "were freed");
    }
  }
  if (const std::uint64_t unmapped = group.unmapped_count.value_or(0)) {
    life += std::string(life.empty() ? "" : "; ") + human_count(unmapped) +
            (unmapped == 1 ? " handle is" : " handles are") + " unmapped but never released";
  }
  if (!life.empty()) text += style.dim("       " + life) + "\n";
  if (const std::string steps = words_of_steps(group.named_steps, group.count.value_or(0));
      !steps.empty())
    text += "       made " + steps + "\n";
}

void add_sums(const IndexedReport& report, const std::vector<model::LeakGroup>& groups,
              const TextOptions& options, const Style& style, std::string& text) {
  struct Sum {
    std::uint64_t bytes = 0, count = 0, groups = 0, growing = 0;
  };
  std::map<std::string, Sum> sums;
  for (const auto& group : groups) {
    std::string name;
    if (options.by == GroupBy::module) name = printable(report.module_name(group.module));
    if (options.by == GroupBy::api) name = text_or(group.api, "");
    if (options.by == GroupBy::kind) name = memory_name(group.kind, group.device);
    Sum& sum = sums[name.empty() ? "unknown" : name];
    sum.bytes += group.bytes.value_or(0);
    sum.count += group.count.value_or(0);
    ++sum.groups;
    sum.growing += group.growth == "growing" ? 1 : 0;
  }
  std::vector<std::pair<std::string, Sum>> rows(sums.begin(), sums.end());
  std::ranges::stable_sort(rows, [](const auto& left, const auto& right) {
    return left.second.bytes > right.second.bytes;
  });
  const std::size_t shown = options.top == 0 ? rows.size() : std::min(options.top, rows.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const Sum& sum = rows[i].second;
    text += "  " + padded(human_bytes(sum.bytes), 10, true) + "  " + padded(rows[i].first, 28) +
            " " + allocations(sum.count) + " from " + human_count(sum.groups) +
            (sum.groups == 1 ? " stack" : " stacks") +
            (sum.growing > 0 ? style.red(", " + human_count(sum.growing) + " growing") : "") + "\n";
  }
  if (shown < rows.size()) {
    text +=
        style.dim("  … " + std::to_string(rows.size() - shown) + " more; --top 0 shows all") + "\n";
  }
}

bool wanted(const IndexedReport& report, const model::LeakGroup& group,
            const TextOptions& options) {
  if (group.bytes.value_or(0) < options.min_bytes) return false;
  return options.module.empty() || is_in_module(report, group, options.module);
}

// Adds a line for each rule that excludes leaks. Rules that matched nothing have one if the options
// want it.
void add_suppressions(const IndexedReport& report, const TextOptions& options, const Style& style,
                      std::string& text) {
  if (!report->suppressions.empty() && report->leaks.suppressed_bytes.value_or(0) == 0)
    text += "\n  suppressed: nothing\n";
  for (const model::Suppression& rule : report->suppressions) {
    const bool is_unmatched = rule.groups.value_or(0) == 0;
    if (is_unmatched && !options.unmatched_suppressions) continue;
    const std::string words = "    leak:" + printable(rule.pattern);
    const std::uint64_t count = rule.count.value_or(0);
    text += style.dim(words + (is_unmatched ? " matched nothing"
                                            : ": " + human_bytes(rule.bytes.value_or(0)) + " in " +
                                                  allocations(count))) +
            "\n";
  }
}

// Returns words for the part of the leaks that is lost; empty: none is, or it is not known.
std::string lost_of(const IndexedReport& report, const Style& style) {
  std::uint64_t bytes = 0, count = 0;
  for (const model::LeakGroup& group : report->leak_groups) {
    if (group.released_by || group.suppressed) continue;
    bytes += group.lost_bytes.value_or(0);
    count += group.lost_count.value_or(0);
  }
  if (count == 0) return "";
  return "  " + style.red("LOST") + ": " + human_bytes(bytes) + " in " + allocations(count) +
         ", since no pointer to " + (count == 1 ? "it" : "them") +
         " was found in the process's memory\n";
}

// Adds a line about lost memory, and one about a search for pointers that was not complete.
void add_pointer_search(const IndexedReport& report, const Style& style, std::string& text) {
  text += lost_of(report, style);
  if (report->pointer_search && !report->pointer_search->is_complete)
    text += style.dim("  The search for pointers is not complete: " +
                      printable(report->pointer_search->reason.value_or("no reason is known"))) +
            "\n";
}

// Memory that libraries and frameworks keep for themselves, which the list of leaks sums up in a
// line at its end.
class KeptByLibraries {
 public:
  // Returns true if the group is such memory, and adds it to the sums.
  bool take(const IndexedReport& report, const model::LeakGroup& group) {
    const LibraryMemory asked = library_memory(report, group);
    if (!is_kept_by_library(asked.use)) return false;
    Sum& sum = asked.use == LibraryUse::workspace ? workspaces_ : idle_;
    sum.bytes += group.bytes.value_or(0);
    ++sum.stacks;
    sum.libraries.insert(asked.library);
    return true;
  }
  // Adds a line for each sum that is not empty.
  void add_lines(const Style& style, std::string& text) const {
    add_line(workspaces_, "workspaces that libraries took once", style, text);
    add_line(idle_, "caches of which the framework uses nothing", style, text);
  }

 private:
  struct Sum {
    std::uint64_t bytes = 0;
    std::size_t stacks = 0;
    std::set<std::string> libraries;
  };
  static void add_line(const Sum& sum, const char* what, const Style& style, std::string& text) {
    if (sum.stacks == 0) return;
    std::string names;
    for (const std::string& name : sum.libraries) names += (names.empty() ? "" : ", ") + name;
    text += "\n  " + human_bytes(sum.bytes) + " from " + human_count(sum.stacks) +
            (sum.stacks == 1 ? " stack: " : " stacks: ") + what + " (" + names + ")" +
            style.dim("; --full-stacks lists them") + "\n";
  }

  Sum workspaces_, idle_;
};

}  // namespace

void add_leak_words(const IndexedReport& report, const model::LeakGroup& group, const Style& style,
                    std::string& text) {
  const bool growing = group.growth == "growing";
  text += style.bold(human_bytes(group.bytes.value_or(0))) + " in " +
          counted(group.count.value_or(0), group.kind) + " · " +
          memory_name(group.kind, group.device) + " · " + text_or(group.api, "unknown call");
  // A framework that lists its blocks itself does not tell when they were made.
  if (group.growth)
    text += " · " + (growing ? style.red(growth_words(group)) + share_of(group) : kept_of(group));
  if (const std::string found = reachability_of(group, style); !found.empty())
    text += " · " + found;
  const std::string module = printable(report.module_name(calling_module(report, group.stack)));
  if (!module.empty() && module != file_name(report->process.program.value_or("")))
    text += " · " + module;
}

void add_leaks_headline(const IndexedReport& report, const Style& style, std::string& text,
                        RowDone done) {
  const auto& leaks = report->leaks;
  const std::uint64_t count = leaks.count.value_or(0);
  if (count == 0) {
    text += plain_headline(report).line() + "\n";
    return;
  }
  const std::string sum = human_bytes(leaks.bytes.value_or(0)) + " in " + allocations(count);
  // Memory that a process still works with is no leak yet.
  if (was_running(report))
    text += style.bold("STILL ALLOCATED") + ": " + sum + "\n";
  else if (was_at_work(report))
    text += style.red("STILL ALLOCATED") + ": " + sum +
            " when the process ended: growing ones may be leaks, the others may have been in use\n";
  else
    text += style.red("LEAKS") + ": " + sum + " never freed\n";
  if (is_only_alive_at_exit(report, style, done))
    text += "  None of it is known to be lost, and " + words_of_no_growth(report) +
            ": it was alive at the exit, and may have been in use until then\n";
  add_pointer_search(report, style, text);
}

bool is_only_alive_at_exit(const IndexedReport& report, const Style& style, RowDone done) {
  if (report->leaks.count.value_or(0) == 0 || was_running(report) || was_at_work(report))
    return false;
  const auto is_sure = [](const model::LeakGroup& group) { return rank_of_leak(group) < 3; };
  return std::ranges::none_of(merged_leaks(report, style, done), is_sure) &&
         std::ranges::none_of(merged_blocks(report, style), is_sure);
}

void add_blocks(const IndexedReport& report, const TextOptions& options, const Style& style,
                std::string& text) {
  if (report->framework_sites.empty() || options.by != GroupBy::stack || !options.module.empty())
    return;
  std::vector<model::LeakGroup> blocks = merged_blocks(report, style);
  std::uint64_t bytes = 0, count = 0;
  std::set<std::string> frameworks;
  for (const model::LeakGroup& block : blocks) {
    bytes += block.bytes.value_or(0);
    count += block.count.value_or(0);
    frameworks.insert(text_or(block.api, ""));
  }
  std::string names;
  for (const std::string& name : frameworks) names += (names.empty() ? "" : " and ") + name;
  text += "\n" + style.bold("LIVE TENSORS") + ": " + human_bytes(bytes) + " in " +
          counted(count, blocks.front().kind) + " that " + names +
          (frameworks.size() == 1 ? " has" : " have") + " handed out and not got back\n";
  std::erase_if(blocks, [&](const auto& block) { return !wanted(report, block, options); });
  const std::size_t shown = options.top == 0 ? blocks.size() : std::min(options.top, blocks.size());
  const ListWidths widths = widths_of(blocks, shown);
  for (std::size_t i = 0; i < shown; ++i) add_group(report, blocks[i], i + 1, widths, style, text);
  if (shown < blocks.size())
    text += "\n" +
            style.dim("  … " + std::to_string(blocks.size() - shown) +
                      " more stacks; --top 0 shows all") +
            "\n";
}

void add_leaks(const IndexedReport& report, const TextOptions& options, const Headline& headline,
               const Style& style, std::string& text, RowDone done) {
  const auto& leaks = report->leaks;
  // The headline may say already that nothing was leaked.
  if (leaks.count.value_or(0) != 0 || plain_headline(report).line() != headline.line()) {
    text += "\n";
    add_leaks_headline(report, style, text, done);
  }
  std::vector<model::LeakGroup> groups;
  std::uint64_t hidden_bytes = 0, hidden = 0;
  for (model::LeakGroup& group : merged_leaks(report, style, done)) {
    if (wanted(report, group, options)) {
      groups.push_back(std::move(group));
    } else {
      ++hidden;
      hidden_bytes += group.bytes.value_or(0);
    }
  }
  std::ranges::stable_sort(groups, {}, rank_of_leak);
  if (options.by == GroupBy::stack) {
    std::uint64_t segment_bytes = 0;
    // The blocks are listed in place of the segments in which they lie.
    if (options.module.empty())
      std::erase_if(groups, [&](const model::LeakGroup& group) {
        if (!holds_listed_blocks(report, group)) return false;
        segment_bytes += group.bytes.value_or(0);
        return true;
      });
    if (segment_bytes != 0)
      text +=
          style.dim("  " + human_bytes(segment_bytes) +
                    " of these are segments of PyTorch's: LIVE TENSORS lists the blocks in them") +
          "\n";
    KeptByLibraries kept;
    const auto last =
        std::stable_partition(groups.begin(), groups.end(), [&](const model::LeakGroup& group) {
          done();
          return !kept.take(report, group);
        });
    if (!style.shows_full_stacks()) groups.erase(last, groups.end());
    const std::size_t shown =
        options.top == 0 ? groups.size() : std::min(options.top, groups.size());
    const ListWidths widths = widths_of(groups, shown);
    for (std::size_t i = 0; i < shown; ++i) {
      add_group(report, groups[i], i + 1, widths, style, text);
      done();
    }
    if (shown < groups.size()) {
      std::uint64_t rest = 0;
      for (std::size_t i = shown; i < groups.size(); ++i) rest += groups[i].bytes.value_or(0);
      text += "\n" +
              style.dim("  … " + std::to_string(groups.size() - shown) + " more stacks with " +
                        human_bytes(rest) + "; --top 0 shows all") +
              "\n";
    }
    if (!style.shows_full_stacks()) kept.add_lines(style, text);
  } else {
    add_sums(report, groups, options, style, text);
  }
  if (hidden > 0) {
    text += style.dim("\n  left out by the filters: " + human_bytes(hidden_bytes) + " from " +
                      human_count(hidden) + (hidden == 1 ? " stack" : " stacks")) +
            "\n";
  }
  if (const std::uint64_t bytes = leaks.released_by_context_bytes.value_or(0)) {
    text += "\n  apart from " + std::string(was_running(report) ? "these" : "leaks") + ": " +
            human_bytes(bytes) +
            " were never freed but went when their context was destroyed or reset\n";
    if (options.by == GroupBy::stack) add_released(report, style, text);
  }
  if (const std::uint64_t bytes = leaks.suppressed_bytes.value_or(0)) {
    text += "\n  suppressed: " + human_bytes(bytes) + "\n";
  }
  add_suppressions(report, options, style, text);
}

}  // namespace cuwarden
