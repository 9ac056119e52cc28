// Reading a ledger whose file is cut meanwhile.
#include "tools/cuwarden/ledgers/ledger_file.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>

#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "tests/unit/ledger/ledger_fixture.hpp"

namespace cuwarden {
namespace {

class LedgerFileTest : public testing::Test {
 protected:
  ~LedgerFileTest() override { signal(SIGBUS, SIG_DFL); }

  // Returns the number of hooks that have a name.
  static std::size_t named_hooks(const ledger::Reader& reader) {
    std::size_t named = 0;
    for (std::uint64_t row = 0; row < reader.rows(ledger::RegionId::hooks); ++row) {
      const auto hook = reader.hook(row);
      named += hook && !hook->name.empty() ? 1 : 0;
    }
    return named;
  }

  TemporaryFolder folder;
  ledger::Writer* writer = ledger::make_writer(folder.path());
  const std::string path{writer->file.path()};
};

TEST_F(LedgerFileTest, zeros_are_read_behind_the_end_of_a_file_that_was_cut) {
  zeros_where_files_shrink();
  std::string error;
  const auto file = LedgerFile::open(path, error);
  ASSERT_NE(file, nullptr) << error;
  EXPECT_GT(named_hooks(file->reader()), 0u);
  ASSERT_EQ(truncate(path.c_str(), 0), 0);
  EXPECT_EQ(named_hooks(file->reader()), 0u);
}

TEST_F(LedgerFileTest, another_bus_error_ends_the_process_as_usual) {
  EXPECT_EXIT(
      {
        zeros_where_files_shrink();
        raise(SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace cuwarden
