// Drivers that lay out small allocations otherwise than the known slabs, and situations that only
// look like such a driver.
#include <utility>

#include "tests/unit/ledger/slab_pages_fixture.hpp"

namespace cuwarden::ledger {
namespace {

// Pieces of a driver with other pages, steps or limits, between pieces of the known layout.
class SlabsOfAnotherDriver
    : public SlabPagesTest,
      public testing::WithParamInterface<std::pair<std::uint64_t, std::uint64_t>> {};
TEST_P(SlabsOfAnotherDriver, are_not_counted_as_slabs_of_the_known_layout) {
  const GroupId here = group(1);
  const std::uint64_t offset = GetParam().first, bytes = GetParam().second;
  // A few such pieces prove nothing: they come about if a thread frees a page that others take.
  const auto add_from = [&](std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t i = first; i < first + count; ++i) {
      add(here, base + 8 * i * page + 4096, 4096);
      add(here, base + 8 * i * page + offset, bytes);
    }
  };
  add_from(0, 2);
  for (std::uint64_t i = 0; i < 20; ++i) add(here, base + (1000 + i) * page, 4096);
  ASSERT_GT(worst().holders_ns, 0u);
  EXPECT_TRUE(worst().as_counted);
  add_from(2, 60);
  EXPECT_FALSE(worst().as_counted);
}

// When a context ends, the driver frees its allocations a moment before the ledger does. Meanwhile
// other allocations may get the same addresses.
TEST_F(SlabPagesTest, the_end_of_a_context_does_not_speak_against_the_driver_for_ever) {
  const GroupId here = group(1);
  constexpr std::uint64_t pieces = 40;
  for (std::uint64_t i = 0; i < pieces; ++i) add(here, base + i * page + 4096, 4096);
  for (std::uint64_t i = 0; i < pieces; ++i) add(here, base + i * page, page);
  for (std::uint64_t i = 0; i < pieces; ++i) add(here, base + (1000 + i) * page, 4096);
  ASSERT_GT(worst().holders_ns, 0u);
  EXPECT_FALSE(worst().as_counted) << "as long as it lasts";
  for (std::uint64_t i = 0; i < pieces; ++i) {
    slabs.freed(here, {base + i * page + 4096}, 4096, late_ns);
    RecordFields fields;
    EXPECT_TRUE(records.take(Space::pointer, {base + i * page + 4096}, fields));
  }
  for (std::uint64_t i = 0; i < 4 * pieces; ++i) add(here, base + (2000 + i) * page, 4096);
  EXPECT_TRUE(worst().as_counted);
}
INSTANTIATE_TEST_SUITE_P(OtherDrivers, SlabsOfAnotherDriver,
                         testing::Values(std::pair{std::uint64_t{8192 + 256}, std::uint64_t{100}},
                                         std::pair{std::uint64_t{0}, 3 * page},
                                         std::pair{MiB / 2, page},
                                         std::pair{page - 4096, std::uint64_t{8192}},
                                         std::pair{page / 32, 3 * page}));

TEST_F(SlabPagesTest, whole_pages_beside_slabs_do_not_speak_against_them) {
  const GroupId here = group(1);
  for (std::uint64_t i = 0; i < 400; ++i)
    add(here, base + i * 2 * page, i % 2 == 0 ? 3 * MiB : 4096);
  EXPECT_GT(worst().holders_ns, 0u);
  EXPECT_TRUE(worst().all_counted);
  EXPECT_EQ(worst().pieces_seen, 0u) << "each was alone in its page";
}

}  // namespace
}  // namespace cuwarden::ledger
