// Judges the histories of make_histories.py by the rule of Growth, and by those of Scalene and of
// Chromium, and prints how many each judges right. Fails if Growth judges less than 98 % right.
//
// usage: judge_histories FILE
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "reporters/model/growth.hpp"
#include "runtime_hooks/ledger/format/longest_life.hpp"

namespace {

// Allocations of one call stack in a run. Times are in ns since the process's start.
struct History {
  std::string truth;
  std::uint64_t end_ns = 0;
  // For each allocation, when it was made and when it was freed; 0: not before the end.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> blocks;
};

History history_of(const nlohmann::json& row) {
  constexpr std::uint64_t ns_by_us = 1000;
  History history{row["truth"], row["end_us"].get<std::uint64_t>() * ns_by_us, {}};
  for (std::size_t i = 0; i < row["made_us"].size(); ++i) {
    const auto& freed = row["freed_us"][i];
    history.blocks.emplace_back(row["made_us"][i].get<std::uint64_t>() * ns_by_us,
                                freed.is_null() ? 0 : freed.get<std::uint64_t>() * ns_by_us);
  }
  return history;
}

std::string judged_by_survivors(const History& history) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> frees;  // time, life
  cuwarden::Growth growth{.end_ns = history.end_ns};
  bool has_live = false;
  for (const auto& [made, freed] : history.blocks) {
    if (freed != 0) frees.emplace_back(freed, freed - made);
    if (freed == 0 && !std::exchange(has_live, true)) growth.first_ns = made;
  }
  std::ranges::sort(frees);
  cuwarden::ledger::LongestLife longest;
  for (const auto& [time, life] : frees) longest.freed(time, life);
  growth.longest_life_ns = longest.ns(history.end_ns);
  growth.frees = frees.size();
  for (const auto& [made, freed] : history.blocks)
    if (freed == 0) growth.add(made);
  return std::string(growth.name());
}

// Scalene reports a line whose likelihood 1 - (frees + 1) / (allocations - frees + 2) is 0.95 or
// more.
bool grows_for_scalene(const History& history) {
  const auto frees = static_cast<double>(
      std::ranges::count_if(history.blocks, [](const auto& block) { return block.second != 0; }));
  const auto made = static_cast<double>(history.blocks.size());
  return 1 - (frees + 1) / (made - frees + 2) >= 0.95;
}

// Chromium reports a line whose live memory grows in four looks in a row. Here, the run has
// sixteen.
bool grows_for_chromium(const History& history) {
  constexpr std::uint64_t looks = 16, in_a_row = 4;
  std::vector<std::size_t> live;
  for (std::uint64_t look = looks - in_a_row; look <= looks; ++look) {
    const std::uint64_t now = history.end_ns / looks * look;
    live.push_back(
        static_cast<std::size_t>(std::ranges::count_if(history.blocks, [now](const auto& block) {
          return block.first <= now && (block.second == 0 || block.second > now);
        })));
  }
  return std::ranges::adjacent_find(live, std::greater_equal()) == live.end();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::ifstream file(arguments[1]);
  std::size_t all = 0, exact = 0, survivors = 0, scalene = 0, chromium = 0;
  for (std::string line; std::getline(file, line); ++all) {
    const nlohmann::json row = nlohmann::json::parse(line);
    const History history = history_of(row);
    const bool grows = history.truth == "growing";
    const std::string judged = judged_by_survivors(history);
    exact += judged == history.truth ? 1 : 0;
    survivors += (judged == "growing") == grows ? 1 : 0;
    scalene += grows_for_scalene(history) == grows ? 1 : 0;
    chromium += grows_for_chromium(history) == grows ? 1 : 0;
    if (judged != history.truth)
      std::printf("%s: judged %s\n", row["name"].get<std::string>().c_str(), judged.c_str());
  }
  std::printf(
      "growing or not, of %zu histories: %zu by survivors, %zu by Scalene's rule, %zu by "
      "Chromium's;\n"
      "growing, burst, steady or one_time: %zu by survivors\n",
      all, survivors, scalene, chromium, exact);
  return all == 200 && survivors * 100 >= all * 98 && exact * 100 >= all * 98 ? 0 : 1;
}
