// The pool against a model of the driver's slabs, and against pools that keep groups of blocks
// apart: recorded requests of real programs, with and without meshing on demand. Prints the
// figures.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "runtime_hooks/pool/device_pool.hpp"
#include "tests/repetitions.hpp"
#include "tests/traces/trace.hpp"
#include "tests/unit/pool/counting_driver.hpp"
#include "tests/unit/pool/fake_pause.hpp"
#include "tests/unit/pool/model_of_driver.hpp"

namespace cuwarden::pool {
namespace {

// Bytes of device memory, over all calls of a trace.
struct Figures {
  double mean = 0, peak = 0;
  void add(std::uint64_t bytes, std::size_t calls) {
    mean += static_cast<double>(bytes) / static_cast<double>(calls);
    peak = std::max(peak, static_cast<double>(bytes));
  }
};

struct Compared {
  Figures live, model, pool;
  // The largest and the mean share that the pool holds of what the model holds, right after pages
  // without blocks were given back and others were meshed. In pages: where that is most.
  double worst_meshed = 0, mean_meshed = 0;
  std::int64_t most_pages_above = 0;
};

// A rule by which blocks are put into groups. Each group has pages of its own.
struct Grouping {
  const char* name;
  // Returns the number of the request's group, below 200. `number`: how many calls came before.
  std::uint64_t (*group_of)(const traces::Call&, std::size_t number);
};
constexpr std::array groupings{
    Grouping{"none", [](const traces::Call&, std::size_t) -> std::uint64_t { return 0; }},
    Grouping{"small apart",
             [](const traces::Call& call, std::size_t) -> std::uint64_t {
               return call.bytes <= 64 * 1024 ? 1 : 0;
             }},
    Grouping{"call site",
             [](const traces::Call& call, std::size_t) { return call.site % std::uint64_t{200}; }},
    Grouping{"age",
             [](const traces::Call&, std::size_t number) -> std::uint64_t {
               return number / 1000 % 200;
             }},
    Grouping{"site and age",
             [](const traces::Call& call, std::size_t number) -> std::uint64_t {
               return (call.site % 20) * 10 + number / 2000 % 10;
             }},
};

// A program that makes the calls of a trace on the pool and on the model.
class Replay {
 public:
  explicit Replay(const Grouping& grouping = groupings.front()) : grouping_(grouping) {
    driver = std::make_unique<Driver>();
    driver->free_bytes = std::uint64_t{64} << 30;
    real_ = functions();
  }

  // Meshes at `meshings` times that are spread evenly over the trace.
  Compared run(const std::vector<traces::Call>& calls, std::size_t meshings) {
    Compared result;
    std::vector<std::uint64_t> addresses, sizes;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const traces::Call& call = calls[i];
      if (call.is_request) {
        const bool is_ours = DevicePool::is_wasteful(call.bytes);
        addresses.push_back(is_ours ? pool_.allocate(real_, DeviceOrdinal{0},
                                                     ContextId{7 + grouping_.group_of(call, i)},
                                                     call.bytes, 1)
                                    : 0);
        sizes.push_back(call.bytes);
        if (is_ours) model_.allocate(call.request, call.bytes);
      } else if (const std::uint64_t at = addresses[call.request]; at != 0) {
        Arena* const arena = pool_.owner(at);
        arena->give(*arena->retire(at), 1);
        model_.free(call.request, sizes[call.request]);
      }
      const ArenaCounts counts = pool_.counts(DeviceOrdinal{0});
      const std::uint64_t unused = counts.idle_bytes + counts.partly_idle_bytes;
      result.live.add(counts.live_bytes, calls.size());
      result.pool.add(counts.held_bytes - unused, calls.size());
      result.model.add(model_.held_bytes(), calls.size());
      if (meshings != 0 && (i + 1) % (calls.size() / (meshings + 1)) == 0) mesh(result, meshings);
    }
    return result;
  }

 private:
  void mesh(Compared& result, std::size_t meshings) {
    pool_.give_back(real_, no_device, UINT64_MAX);
    FakePause pause;
    while (pool_.mesh(real_, DeviceOrdinal{0}, pause, {1, 1, UINT64_MAX / 2}) != 0) {
    }
    const std::uint64_t held = pool_.counts(DeviceOrdinal{0}).held_bytes,
                        model = model_.held_bytes();
    const double share = model == 0 ? 1 : static_cast<double>(held) / static_cast<double>(model);
    result.worst_meshed = std::max(result.worst_meshed, share);
    result.mean_meshed += share / static_cast<double>(meshings);
    result.most_pages_above =
        std::max(result.most_pages_above, static_cast<std::int64_t>(held / page_bytes) -
                                              static_cast<std::int64_t>(model / page_bytes));
  }

  const Grouping& grouping_;
  driver::RealDriver real_;
  Peers peers_;
  DevicePool pool_{peers_};
  ModelOfDriver model_;
};

TEST(TraceComparison, programs_need_no_more_memory_in_the_pool_than_in_the_drivers_slabs) {
  constexpr double in_mib = 1.0 / static_cast<double>(MiB);
  double sum = 0;
  std::printf(
      "MiB of device memory, in the mean (at most)  | the pool's share after meshing\n"
      "%-20s live  driver        pool          | mean   worst\n",
      "program");
  for (const char* const program : traces::programs) {
    const auto calls = traces::read(std::string(TRACES) + "/" + program + ".txt");
    ASSERT_GT(calls.size(), 10'000u) << program;
    const Compared plain = Replay().run(calls, 0), meshed = Replay().run(calls, 30);
    std::printf("%-20s %5.1f %5.1f (%5.1f) %5.1f (%5.1f) | %.3f  %.3f\n", program,
                plain.live.mean * in_mib, plain.model.mean * in_mib, plain.model.peak * in_mib,
                plain.pool.mean * in_mib, plain.pool.peak * in_mib, meshed.mean_meshed,
                meshed.worst_meshed);
    EXPECT_LE(plain.pool.mean, plain.model.mean * 1.02) << program;
    // In a program that needs 50 pages, two of them are more than 2 %.
    EXPECT_TRUE(meshed.worst_meshed <= 1.02 || meshed.most_pages_above <= 2) << program;
    EXPECT_LT(meshed.mean_meshed, 1.0) << program;
    sum += plain.pool.mean / plain.model.mean;
  }
  EXPECT_LT(sum, static_cast<double>(traces::programs.size()));
}

// Blocks of one call site or age often die together. So groups with pages of their own might leave
// more pages empty. Each group has a page that is not full, however.
TEST(TraceComparison, no_groups_of_blocks_with_pages_of_their_own_need_less_memory) {
  if (test::is_sanitized) GTEST_SKIP() << "takes a minute under a sanitizer";
  std::printf("share of the driver's memory, in the mean: before / after meshing\n%-20s",
              "program");
  for (const Grouping& grouping : groupings) std::printf(" %15s", grouping.name);
  std::printf("\n");
  std::array<double, groupings.size()> sums{};
  // All programs are compared if LARGE_COUNTS is set; otherwise the first one only.
  const std::size_t programs = test::repetitions(1, traces::programs.size());
  for (const char* const program : std::span(traces::programs).first(programs)) {
    const auto calls = traces::read(std::string(TRACES) + "/" + program + ".txt");
    ASSERT_GT(calls.size(), 10'000u) << program;
    std::printf("%-20s", program);
    for (std::size_t i = 0; i < groupings.size(); ++i) {
      const Compared plain = Replay(groupings[i]).run(calls, 0),
                     meshed = Replay(groupings[i]).run(calls, 30);
      std::printf("   %.3f / %.3f", plain.pool.mean / plain.model.mean, meshed.mean_meshed);
      sums[i] += plain.pool.mean / plain.model.mean;
    }
    std::printf("\n");
  }
  for (std::size_t i = 1; i < groupings.size(); ++i)
    EXPECT_LT(sums.front(), sums[i]) << groupings[i].name;
}

}  // namespace
}  // namespace cuwarden::pool
