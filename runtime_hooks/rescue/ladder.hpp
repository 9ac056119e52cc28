// The policy: which rungs a refused request climbs, how long each may take, and when it is not
// worth while to climb again.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/rescue/rungs.hpp"

namespace cuwarden::rescue {

struct Settings {
  bool enabled = false;
  std::uint64_t sync_timeout_ns = 2'000'000'000;
  std::uint64_t wait_ns = 0;  // 0: never
};

// What a ladder that finds nothing would not find the next time either.
struct Situation {
  std::uint32_t device = 0;      // any number that tells devices and the host apart
  std::uint64_t live_bytes = 0;  // of this process there
  std::uint32_t pending = 0;     // PendingFrees::version()
};

struct Climbed {
  Rung rung{};
  RungOutcome outcome{};
  std::uint64_t duration_ns = 0;
};

class Ladder {
 public:
  explicit Ladder(const Settings& settings) noexcept : settings_(settings) {}
  bool enabled() const noexcept { return settings_.enabled; }

  // Whether anything may have changed since a ladder found nothing there: something was freed, or a
  // tenth of a second has passed.
  bool is_worth_climbing(const Situation&) const noexcept;
  // Until the request is served, or all rungs are climbed. `climbed` hears of each. True: served,
  // by the last of them. `patient`: with the wait that the user allows; the requester does not free
  // its own cache and ask again first.
  bool climb(const Attempt&, bool patient, FunctionRef<void(const Climbed&)> climbed);
  void found_nothing(const Situation&) noexcept;

 private:
  struct Failed {
    std::atomic<std::uint64_t> time_ns{0}, live_bytes{0};
    std::atomic<std::uint32_t> pending{0};
  };
  static constexpr std::uint32_t places = 64;
  const Settings settings_;
  Failed failed_[places];
};

}  // namespace cuwarden::rescue
