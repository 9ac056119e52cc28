#include "reporters/reachability/pointer_search.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/unit/reporters/reachability/block_addresses.hpp"

namespace cuwarden::reachability {
namespace {

// A process of pointer_fixture.cpp, which keeps block i in location i.
class Fixture {
 public:
  explicit Fixture(std::vector<std::string> locations) {
    int input[2], output[2];
    if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0) std::abort();
    std::vector<char*> arguments{const_cast<char*>(POINTER_FIXTURE)};
    for (std::string& location : locations) arguments.push_back(location.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    if (posix_spawn(&pid_, POINTER_FIXTURE, &actions, nullptr, arguments.data(), environ) != 0)
      std::abort();
    posix_spawn_file_actions_destroy(&actions);
    close(input[0]);
    close(output[1]);
    input_ = input[1];
    char text[16];
    is_ready_ = read(output[0], text, sizeof text) == 6;
    close(output[0]);
    count_ = static_cast<std::uint32_t>(locations.size());
  }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;
  ~Fixture() {
    close(input_);
    waitpid(pid_, nullptr, 0);
  }

  // Searches for the blocks that are not probes: the first ones. The last `probes` blocks are known
  // to nothing but the records of the process. The first `others` blocks are of a kind that no
  // probe has.
  FoundPointers search(std::uint32_t probes = 0, bool may_go_on = true,
                       std::uint32_t others = 0) const {
    EXPECT_TRUE(is_ready_);
    PointerSearch wanted;
    wanted.pid = pid_;
    wanted.allocations = count_ - probes;
    const std::uint8_t kind = probes == 0 ? no_records : 0;
    for (std::uint32_t i = 0; i < count_; ++i) {
      const Block block{~inverted_address(i), block_bytes,
                        i < wanted.allocations ? i : i - wanted.allocations,
                        i < others ? std::uint8_t{1} : kind};
      (i < wanted.allocations ? wanted.blocks : wanted.probes).push_back(block);
    }
    return search_pointers(wanted, [may_go_on] { return may_go_on; });
  }

 private:
  pid_t pid_ = 0;
  int input_ = -1;
  bool is_ready_ = false;
  std::uint32_t count_ = 0;
};

std::vector<std::string> names(const FoundPointers& found) {
  std::vector<std::string> names;
  for (const Reach reach : found.reach) names.emplace_back(reach_name(reach));
  return names;
}

using Names = std::vector<std::string>;

TEST(PointerSearchTest, finds_pointers_in_each_part_of_memory) {
  const std::vector<std::string> locations{"data",         "bss",         "heap",
                                           "large_heap",   "mapped_heap", "thread_storage",
                                           "thread_stack", "page",        "read_only_page"};
  const FoundPointers found = Fixture(locations).search();
  EXPECT_EQ(found.outcome, ReachSearch::complete);
  EXPECT_EQ(names(found), Names(locations.size(), "reachable"));
  EXPECT_GT(found.scanned_bytes, 100'000u);
}

TEST(PointerSearchTest, a_block_without_pointers_is_lost) {
  EXPECT_EQ(names(Fixture({"none", "tagged", "hidden_page"}).search()), Names(3, "lost"));
}

TEST(PointerSearchTest, pointers_behind_the_start_are_told_apart) {
  EXPECT_EQ(names(Fixture({"heap_inside", "heap"}).search()), (Names{"interior", "reachable"}));
}

TEST(PointerSearchTest, pointers_in_memory_that_malloc_has_free_do_not_count) {
  EXPECT_EQ(names(Fixture({"freed_40", "freed_90000", "heap"}).search()),
            (Names{"lost", "lost", "reachable"}));
}

TEST(PointerSearchTest, records_are_told_from_the_pointers_of_the_program) {
  const Fixture fixture({"record", "record", "node", "record_and_node", "heap", "record", "record",
                         "record", "record"});
  const FoundPointers found = fixture.search(4);
  EXPECT_EQ(found.outcome, ReachSearch::complete);
  EXPECT_EQ(names(found), (Names{"lost", "lost", "reachable", "reachable", "reachable"}));
}

TEST(PointerSearchTest, without_known_records_nothing_is_lost) {
  const Fixture fixture({"record", "data", "none"});
  const FoundPointers found = fixture.search(1);
  EXPECT_EQ(found.outcome, ReachSearch::records_unknown);
  EXPECT_EQ(names(found), (Names{"unknown", "reachable"}));
}

TEST(PointerSearchTest, a_kind_of_block_without_probes_is_lost_only_if_no_word_may_be_a_pointer) {
  const Fixture fixture(
      {"record", "heap", "data", "none", "record", "record", "record", "record", "record"});
  const FoundPointers found = fixture.search(4, true, 4);
  EXPECT_EQ(found.outcome, ReachSearch::complete);
  EXPECT_EQ(names(found), (Names{"unknown", "unknown", "reachable", "lost", "lost"}));
}

TEST(PointerSearchTest, without_time_nothing_is_lost) {
  const FoundPointers found = Fixture({"heap", "none"}).search(0, false);
  EXPECT_EQ(found.outcome, ReachSearch::out_of_time);
  EXPECT_EQ(names(found), Names(2, "unknown"));
}

TEST(PointerSearchTest, a_process_that_has_ended_is_not_searched) {
  PointerSearch wanted;
  wanted.pid = 999'999'999;
  wanted.allocations = 1;
  wanted.blocks = {{~inverted_address(0), block_bytes, 0, no_records}};
  const FoundPointers found = search_pointers(wanted, [] { return true; });
  EXPECT_EQ(found.outcome, ReachSearch::pages_unknown);
  EXPECT_EQ(names(found), Names{"unknown"});
}

}  // namespace
}  // namespace cuwarden::reachability
