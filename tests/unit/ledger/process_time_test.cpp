// The ledger's times, which count from the start of the process.
#include "runtime_hooks/ledger/storage/process_time.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>

#include "tests/unit/ledger/ledger_fixture.hpp"

namespace cuwarden::ledger {
namespace {

// Returns the nanoseconds since the machine was booted, by the clock of Process::start_ticks.
std::uint64_t since_boot_ns() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}
const std::uint64_t before_all_tests_ns = since_boot_ns();

TEST_F(LedgerTest, times_count_from_the_start_of_the_process) {
  const std::uint64_t tick_ns = 1'000'000'000 / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  const std::uint64_t start_ns = reader().process().start_ticks * tick_ns;
  const std::uint64_t age_ns = writer->time.now_ns();
  EXPECT_GE(age_ns, before_all_tests_ns - start_ns);
  EXPECT_LE(age_ns, since_boot_ns() - start_ns);
}

}  // namespace
}  // namespace cuwarden::ledger
