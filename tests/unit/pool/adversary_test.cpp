// A search for programs that need much more memory in the pool than in the driver's slabs. Programs
// that are the worst so far are changed at random, and kept if they become worse.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "runtime_hooks/pool/device_pool.hpp"
#include "tests/repetitions.hpp"
#include "tests/unit/pool/counting_driver.hpp"
#include "tests/unit/pool/fake_pause.hpp"
#include "tests/unit/pool/model_of_driver.hpp"

namespace cuwarden::pool {
namespace {

// A part of a program: requests of one size, and then frees of blocks of an earlier part, or of
// this one: of each `every`-th block, from number `first` on; 0: of none.
struct Part {
  std::uint64_t bytes = 512;
  std::uint32_t count = 0;
  std::uint32_t of = 0, first = 0, every = 0;
};
using Program = std::vector<Part>;

constexpr std::uint64_t most_live_bytes = 400 * MiB, least_model_pages = 32;

std::string text_of(const Program& program) {
  std::string text;
  for (const Part& part : program) {
    text += " " + std::to_string(part.count) + "x" + std::to_string(part.bytes);
    if (part.every != 0)
      text += ", free each " + std::to_string(part.every) + ". of part " + std::to_string(part.of) +
              " from " + std::to_string(part.first) + " on";
    text += ";";
  }
  return text;
}

// Returns how many times as much memory the pool holds as the model, after all that can be given
// back or meshed. Returns 0 for programs that are too large, or that leave too little.
double share_of(const Program& program) {
  driver = std::make_unique<Driver>();
  driver->free_bytes = std::uint64_t{64} << 30;
  const driver::RealDriver real = functions();
  Peers peers;
  DevicePool pool(peers);
  ModelOfDriver model;
  std::vector<std::vector<std::uint64_t>> blocks(program.size());
  std::uint64_t live = 0;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Part& part = program[i];
    for (std::uint32_t n = 0; n < part.count; ++n) {
      if ((live += part.bytes) > most_live_bytes) return 0;
      blocks[i].push_back(pool.allocate(real, DeviceOrdinal{0}, ContextId{7}, part.bytes, 1));
      if (blocks[i].back() == 0) return 0;
      model.allocate(blocks[i].back(), part.bytes);
    }
    const std::size_t of = std::min<std::size_t>(part.of, i);
    for (std::size_t n = part.first; part.every != 0 && n < blocks[of].size(); n += part.every) {
      const std::uint64_t at = std::exchange(blocks[of][n], 0);
      if (at == 0) continue;
      Arena* const arena = pool.owner(at);
      arena->give(*arena->retire(at), 1);
      model.free(at, program[of].bytes);
      live -= program[of].bytes;
    }
  }
  if (model.held_bytes() < least_model_pages * page_bytes) return 0;
  pool.give_back(real, no_device, UINT64_MAX);
  FakePause pause;
  while (pool.mesh(real, DeviceOrdinal{0}, pause, {1, 1, UINT64_MAX / 2}) != 0) {
  }
  return static_cast<double>(pool.counts(DeviceOrdinal{0}).held_bytes) /
         static_cast<double>(model.held_bytes());
}

class Search {
 public:
  explicit Search(std::uint64_t seed) : random_(seed) {}

  Program any() {
    Program made(2 + random_() % 4);
    for (Part& part : made) change(part, made.size());
    return made;
  }
  Program changed(Program program) {
    for (std::uint64_t changes = 1 + random_() % 2; changes != 0; --changes) {
      if (random_() % 8 == 0 && program.size() < 8) program.emplace_back();
      change(program[random_() % program.size()], program.size());
    }
    return program;
  }

 private:
  void change(Part& part, std::size_t parts) {
    const auto below = [&](std::uint64_t limit) {
      return static_cast<std::uint32_t>(random_() % limit);
    };
    if (part.count == 0 || below(3) == 0) {
      part.bytes = (std::uint64_t{512} << below(12)) + 512 * below(4);
      if (below(2) == 0) part.bytes = 512 + 512 * below(2 * 2047);
      if (!DevicePool::is_wasteful(part.bytes)) part.bytes = 512;
    }
    if (part.count == 0 || below(3) == 0)
      part.count = 1 + below(std::min<std::uint64_t>(4000, 1 + 200 * MiB / part.bytes));
    if (below(2) == 0) {
      part.of = below(parts);
      part.every = below(3) == 0 ? 0 : 1 + below(below(2) == 0 ? 8 : 600);
      part.first = part.every == 0 ? 0 : below(part.every);
    }
  }

  std::mt19937_64 random_;
};

TEST(Adversary, the_worst_program_that_a_search_finds_needs_little_more_than_in_the_drivers_slabs) {
  // PROGRAMS, of the environment, chooses another number.
  const auto tries = static_cast<int>(test::chosen("PROGRAMS", test::repetitions(60, 5'000)));
  constexpr int restart_after = 200;
  double worst = 0, best_of_start = 0;
  Program worst_program, current;
  Search search(1);
  int since_better = restart_after;
  for (int i = 0; i < tries; ++i) {
    const bool restarts = since_better >= restart_after;
    const Program tried = restarts ? search.any() : search.changed(current);
    if (restarts) best_of_start = 0;
    const double share = share_of(tried);
    since_better = restarts ? 0 : since_better + 1;
    if (share <= best_of_start) continue;
    best_of_start = share;
    current = tried;
    since_better = 0;
    if (share <= worst) continue;
    worst = share;
    worst_program = tried;
  }
  std::printf("%d programs: the worst holds %.3f of the driver's memory:%s\n", tries, worst,
              text_of(worst_program).c_str());
  EXPECT_GT(worst, 0.0);
  EXPECT_LT(worst, 3.5) << "the worst of 20,000 was 3.15";
}

}  // namespace
}  // namespace cuwarden::pool
