// Names of call sites, which a thread of their own looks up while others read them.
#include "tools/cuwarden/top/top_names.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "tests/comes_about.hpp"
#include "tests/repetitions.hpp"
#include "tests/unit/ledger/ledger_fixture.hpp"

namespace cuwarden {

// Code of this program, in which the outermost frame of all stacks lies.
void outermost_code() {}

namespace {

class CallSiteNamesTest : public ledger::LedgerTest {
 protected:
  // Makes `count` groups in the ledger, each with a call stack of its own; returns their rows. The
  // inner frame of each lies in no library, the outer one in outermost_code().
  std::vector<std::uint32_t> make_groups(std::uint32_t count) {
    std::vector<std::uint32_t> rows;
    for (std::uint32_t row = 0; row < count; ++row) {
      const std::array<ledger::Frame, 2> frames = {
          ledger::Frame{0x1000} + row, reinterpret_cast<ledger::Frame>(&outermost_code) + 1};
      rows.push_back(writer->groups
                         .get({writer->stacks.intern(frames, false), HookId{0}, Kind::device,
                               DeviceOrdinal{0}})
                         .value);
    }
    return rows;
  }
  // Returns the ledger, opened as the command opens it. Fails the test if it cannot be read.
  std::shared_ptr<const LedgerFile> file() const {
    std::string error;
    std::shared_ptr<const LedgerFile> opened =
        LedgerFile::open(std::string(writer->file.path()), error);
    EXPECT_NE(opened, nullptr) << error;
    return opened;
  }
};

TEST_F(CallSiteNamesTest, threads_read_names_while_others_are_looked_up) {
  const auto groups = make_groups(60);
  CallSiteNames names(file());
  std::vector<std::thread> readers;
  for (unsigned first = 0; first < 3; ++first)
    readers.emplace_back([&, first] {
      for (std::size_t at = first; at < groups.size(); at += 3) {
        // Two ways to ask: with library and offset at once, and without.
        at % 2 == 0 ? names.want({groups[at]}) : names.want_later({groups[at]});
        for (const std::uint32_t group : groups) names.get(group);
        names.whole_stack(groups[at]);
        names.are_known();
      }
    });
  for (std::thread& reader : readers) reader.join();
  names.wait();
  EXPECT_TRUE(names.are_known());
  EXPECT_GT(names.revision(), 0u);
  for (const std::uint32_t group : groups) {
    EXPECT_NE(names.get(group).where.find("outermost_code"), std::string::npos)
        << names.get(group).where;
    const auto stack = names.whole_stack(group);
    ASSERT_TRUE(stack.has_value());
    EXPECT_EQ(stack->size(), 2u);
  }
}

TEST_F(CallSiteNamesTest, library_and_offset_are_there_as_soon_as_they_were_asked_for) {
  const auto groups = make_groups(1);
  CallSiteNames names(file());
  EXPECT_EQ(names.get(groups[0]).where, "");
  names.want(groups);
  const std::string where = names.get(groups[0]).where;
  EXPECT_TRUE(where.find("top_names_test+0x") != std::string::npos ||
              where.find("outermost_code") != std::string::npos)
      << where;
  EXPECT_EQ(names.get(groups[0]).api, "cudaMalloc");
}

TEST_F(CallSiteNamesTest, names_may_go_while_they_are_looked_up) {
  const auto groups = make_groups(10);
  const auto opened = file();
  const auto rounds = static_cast<unsigned>(test::repetitions(20));
  for (unsigned round = 0; round < rounds; ++round) {
    CallSiteNames names(opened);
    // The thread runs before it gets work. The object then goes at different moments of that work.
    names.want_later({groups[0]});
    names.wait();
    names.want_later(groups);
    names.whole_stack(groups[0]);
    usleep(round * 2000 / rounds);
  }
  // The threads end by themselves, and then no longer hold the ledger.
  EXPECT_TRUE(comes_about([&] { return opened.use_count() == 1; }));
}

}  // namespace
}  // namespace cuwarden
