// The pool against a model of the driver's slabs: random programs of 10,000 calls, after which the
// pool gives back what it can, by meshing, too.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "runtime_hooks/pool/device_pool.hpp"
#include "tests/repetitions.hpp"
#include "tests/unit/pool/counting_driver.hpp"
#include "tests/unit/pool/fake_pause.hpp"
#include "tests/unit/pool/model_of_driver.hpp"

namespace cuwarden::pool {
namespace {

// A random program, which makes the same calls on the pool and on the model.
class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed) : random_(seed) {
    driver = std::make_unique<Driver>();
    driver->free_bytes = std::uint64_t{64} << 30;
    least_ = std::uint64_t{512} << below(11);
    most_ = std::max(least_, least_ << below(5));
    real_ = functions();
  }

  // Makes `calls` calls, in phases in which blocks of one kind of size come, and any of them go.
  void run(int calls) {
    for (int left = calls; left > 0;) {
      const int phase = std::min<int>(left, 200 + static_cast<int>(below(2000)));
      const unsigned share_of_frees = static_cast<unsigned>(below(101));
      for (int i = 0; i < phase; ++i) {
        if (!blocks_.empty() && (below(100) < share_of_frees || live_bytes_ > most_live_bytes))
          free_one();
        else
          allocate();
      }
      left -= phase;
    }
    // At the end some of the blocks go by chance.
    const std::size_t stay = blocks_.size() * below(101) / 100;
    while (blocks_.size() > stay) free_one();
  }
  // Gives back all that can be given back.
  void settle() {
    pool_.give_back(real_, no_device, UINT64_MAX);
    FakePause pause;
    while (pool_.mesh(real_, DeviceOrdinal{0}, pause, {1, 1, UINT64_MAX / 2}) != 0) {
    }
  }
  std::uint64_t held_bytes() { return pool_.counts(DeviceOrdinal{0}).held_bytes; }
  std::uint64_t model_bytes() const { return model_.held_bytes(); }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  void allocate() {
    std::uint64_t bytes = least_ + below(most_ - least_ + 1);
    if (!DevicePool::is_wasteful(bytes)) bytes = least_;  // other requests go to the driver
    const std::uint64_t at = pool_.allocate(real_, DeviceOrdinal{0}, ContextId{7}, bytes, 1);
    ASSERT_NE(at, 0u);
    blocks_.push_back({at, bytes});
    live_bytes_ += bytes;
    model_.allocate(at, bytes);
  }
  void free_one() {
    const std::size_t which = below(blocks_.size());
    const auto [at, bytes] = blocks_[which];
    blocks_[which] = blocks_.back();
    blocks_.pop_back();
    live_bytes_ -= bytes;
    Arena* const arena = pool_.owner(at);
    arena->give(*arena->retire(at), 1);
    model_.free(at, bytes);
  }

  struct Mine {
    std::uint64_t at = 0, bytes = 0;
  };
  static constexpr std::uint64_t most_live_bytes = 800 * MiB;  // the device has 1000 MiB
  std::mt19937_64 random_;
  // Sizes of the requests, and the sum of those that are live.
  std::uint64_t least_ = 0, most_ = 0, live_bytes_ = 0;
  driver::RealDriver real_;
  Peers peers_;
  DevicePool pool_{peers_};
  ModelOfDriver model_;
  std::vector<Mine> blocks_;
};

TEST(SlabComparison, the_pool_holds_hardly_ever_more_than_the_driver_would_and_less_in_the_mean) {
  // PROGRAMS and FIRST_SEED, of the environment, choose others.
  const std::uint64_t programs = test::chosen("PROGRAMS", test::repetitions(20, 20'000)),
                      from = test::chosen("FIRST_SEED", 1);
  std::uint64_t more = 0;
  double worst = 0, sum_of_shares = 0;
  std::uint64_t worst_seed = 0;
  for (std::uint64_t seed = from; seed < from + programs; ++seed) {
    RandomProgram program(seed);
    program.run(10'000);
    program.settle();
    const auto model = static_cast<double>(program.model_bytes());
    const double share = model == 0 ? 1 : static_cast<double>(program.held_bytes()) / model;
    more += share > 1.02 ? 1 : 0;
    sum_of_shares += share;
    if (share > worst) {
      worst = share;
      worst_seed = seed;
    }
  }
  std::printf(
      "%llu programs: %.3f of the driver's memory in the mean, %.3f in the worst (seed %llu), %llu "
      "above 1.02\n",
      static_cast<unsigned long long>(programs), sum_of_shares / static_cast<double>(programs),
      worst, static_cast<unsigned long long>(worst_seed), static_cast<unsigned long long>(more));
  EXPECT_LE(more, programs / 100);
  EXPECT_LT(sum_of_shares / static_cast<double>(programs), 1.0);
}

}  // namespace
}  // namespace cuwarden::pool
