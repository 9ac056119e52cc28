// Blocks come, go and are meshed for a long time: into new memory and into pages that are there,
// with calls of the driver that fail, and with new blocks in pages that share memory.
#include "tests/repetitions.hpp"
#include "tests/unit/pool/meshing_fixture.hpp"

namespace cuwarden::pool {
namespace {

TEST_P(MeshingEitherWayTest, contents_stay_right_over_many_meshes) {
  // PAGES and FIRST_SEED, of the environment, choose others.
  const std::uint64_t wanted = test::chosen("PAGES", test::repetitions(1'000, 1'000'000));
  random.seed(test::chosen("FIRST_SEED", 1));
  std::uint64_t rounds = 0, failed = 0;
  // A few rounds may have no call that fails.
  for (; counts().meshed_pages < wanted || (failed == 0 && rounds < 200); ++rounds) {
    // Few large blocks, or many small ones, so that pages are full at different offsets.
    const unsigned most_bits = 1 + static_cast<unsigned>(random() % 9);
    fill(std::uint64_t{2 + random() % 60} * MiB, most_bits);
    const unsigned keeps = 2 + static_cast<unsigned>(random() % 12);
    keep_one_of(keeps);
    if (random() % 2 == 0) pool.give_back(real, no_device, UINT64_MAX);
    const std::uint64_t withheld = random() % 2 == 0 ? 0 : driver->free_bytes;
    driver->free_bytes -= withheld;
    const int fails_at = random() % 4 == 0 ? static_cast<int>(random() % 300) : -1;
    driver->fail_after = fails_at;
    mesh(1, 1 + static_cast<int>(random() % 8), 1 + static_cast<int>(random() % 4),
         random() % 2 == 0 ? UINT64_MAX / 2 : 8 * MiB);
    failed += fails_at >= 0 && driver->fail_after < 0 ? 1 : 0;
    driver->fail_after = -1;
    driver->free_bytes += withheld;
    ASSERT_TRUE(all_is_right()) << "round " << rounds;
    const ArenaCounts now = counts();
    ASSERT_EQ(now.held_bytes, taken()) << "round " << rounds;
    ASSERT_EQ(now.lost_bytes, 0u);
    if (blocks.size() > 20'000 || now.held_bytes > 200 * MiB) keep_one_of(4);
  }
  std::printf("%llu pages came to share memory in %llu rounds\n",
              static_cast<unsigned long long>(counts().meshed_pages),
              static_cast<unsigned long long>(rounds));
  EXPECT_GT(failed, 0u);
  expect_all_goes();
}

}  // namespace
}  // namespace cuwarden::pool
