// Devices that share their memory with the host. The driver counts the host's page cache as used,
// which the kernel drops when memory is needed.
#include "tests/unit/reporters/verdicts/verdict_case.hpp"

namespace cuwarden {
namespace {

using ledger::Asked;
using ledger::Fact;

// A device of 100 GiB with 2 GiB that the driver counts as free, and a request of 8 GiB.
class PageCache : public Verdicts {
 protected:
  PageCache() {
    given.incident.result = out_of_memory;
    set(Fact::integrated, 1);
    set(Fact::ram_available_bytes, 50 * GiB);
    live(Kind::device, 40 * GiB);
  }
  std::uint64_t cache_in_account() const {
    const auto account = account_of(given);
    return account ? account->of(Holder::page_cache) : 0;
  }
};

TEST_F(PageCache, the_cache_is_to_blame_if_the_request_would_fit_without_it) {
  EXPECT_EQ(verdict(), "held_by_page_cache");
  EXPECT_EQ(proof("page_cache_bytes"), 48 * GiB);
  EXPECT_EQ(proof("ram_available_bytes"), 50 * GiB);
  EXPECT_EQ(proof("free_bytes"), 2 * GiB);
  EXPECT_NE(judge(given).advice.find("drop_caches"), std::string::npos);
  given.incident.asked = Asked::context;
  set(Fact::free_bytes, 100 * MiB);
  EXPECT_EQ(verdict(), "held_by_page_cache");
}

TEST_F(PageCache, the_cache_of_a_host_is_not_in_the_way_of_a_device_with_memory_of_its_own) {
  set(Fact::integrated, ledger::unknown_value);
  EXPECT_EQ(verdict(), "held_by_unlisted_owner");
  EXPECT_EQ(cache_in_account(), 0u);
}

TEST_F(PageCache, without_the_available_memory_the_drivers_figure_counts) {
  set(Fact::ram_available_bytes, ledger::unknown_value);
  EXPECT_EQ(verdict(), "held_by_unlisted_owner");
}

TEST_F(PageCache, the_cache_is_not_to_blame_if_the_request_would_not_fit_without_it_either) {
  live(Kind::device, 90 * GiB);
  set(Fact::ram_available_bytes, 6 * GiB);
  EXPECT_EQ(verdict(), "device_full_own");
  EXPECT_EQ(cache_in_account(), 4 * GiB) << "the account tells it apart all the same";
  set(Fact::ram_available_bytes, 9 * GiB);
  EXPECT_EQ(verdict(), "held_by_page_cache");
}

TEST_F(PageCache, the_cache_is_not_to_blame_if_enough_was_free_or_the_error_is_another_one) {
  set(Fact::free_bytes, 9 * GiB);
  EXPECT_EQ(verdict(), "unknown");
  set(Fact::free_bytes, 2 * GiB);
  EXPECT_EQ(verdict(), "held_by_page_cache");
  given.incident.asked = Asked::launch;
  EXPECT_EQ(verdict(), "implicit_memory");
}

TEST_F(PageCache, the_cache_takes_no_more_of_the_account_than_has_no_other_owner) {
  live(Kind::device, 95 * GiB);
  EXPECT_EQ(cache_in_account(), 3 * GiB);
  set(Fact::ram_available_bytes, 1 * GiB);  // less than the driver counts as free
  EXPECT_EQ(cache_in_account(), 0u);
}

}  // namespace
}  // namespace cuwarden
