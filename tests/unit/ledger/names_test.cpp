// Names of functions that were looked up, once the ledger has no room for further texts.
#include "runtime_hooks/ledger/write/names.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/ledger/ledger_fixture.hpp"

namespace cuwarden::ledger {
namespace {

TEST_F(LedgerTest, a_name_for_which_there_is_no_room_takes_no_row_for_each_lookup) {
  const auto lacks_room = [this] {
    return (read(*writer).process().reasons & reason_names_missing) != 0;
  };
  const std::string text(std::size_t{1} << 20, 'x');
  for (int i = 0; i < 4096 && !lacks_room(); ++i) writer->names.set_environment("TEXT", text);
  ASSERT_TRUE(lacks_room());
  const std::uint64_t before = read(*writer).rows(RegionId::unhooked_lookups);
  for (int i = 0; i < 10; ++i) writer->names.count_unhooked_lookup(text);
  EXPECT_LE(read(*writer).rows(RegionId::unhooked_lookups), before + 1);
}

}  // namespace
}  // namespace cuwarden::ledger
