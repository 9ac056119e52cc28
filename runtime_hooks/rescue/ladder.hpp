// The policy: which rungs a refused request climbs, how long each may take, and when it is not
// worth while to climb again.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/rescue/rungs.hpp"

namespace cuwarden::rescue {

struct Settings {
  bool enabled = false;
  std::uint64_t sync_timeout_ns = 2'000'000'000;
  std::uint64_t wait_ns = 0;  // 0: never
  bool spills = false;
  bool meshes = false;               // whether the pool may have the program pause for a request
  Reclaimers* reclaimers = nullptr;  // the process's
  // Whether the calling thread holds the lock of this name, as "python:gil" (asked for where a
  // reclaimer names it among its modules).
  bool (*holds_lock)(std::string_view name) noexcept = nullptr;
  // Called once for each trouble with each reclaimer.
  void (*trouble)(std::string_view reclaimer, Reclaimers::Trouble) noexcept = nullptr;
};

// What tells whether a ladder that found nothing would find something now.
struct Situation {
  std::uint32_t device = 0;      // any number that tells devices and the host apart
  std::uint64_t live_bytes = 0;  // of this process there
  std::uint32_t noted = 0;       // PendingFrees::noted()
  std::uint64_t bytes = 0;       // asked for
  // Whether others are to give something up for this request, or to be waited for, or the host's
  // memory to be taken: not for one that whoever asks will repeat after having freed its own cache.
  bool is_last_resort_due = true;
  bool can_spill = false;
  bool fits_device = true;  // were it empty
};

// Of each rung twice: when it begins (under_way), for it may be what the process is ended in, and
// when it has ended. Of a wait at each attempt in between, too.
struct Climbed {
  Rung rung{};
  RungOutcome outcome{};
  std::uint64_t duration_ns = 0;
  std::string_view reclaimer;  // its name; for the time of the call
};

class Ladder {
 public:
  explicit Ladder(const Settings& settings) noexcept : settings_(settings) {}
  bool enabled() const noexcept { return settings_.enabled; }
  // One of these, of a comma-separated list.
  bool holds_lock_among(std::string_view names) const noexcept;
  // Whether there is anything that a request is to be kept from until it is due.
  bool has_last_resorts() const noexcept {
    return settings_.wait_ns != 0 || settings_.spills || settings_.meshes || has_reclaimers();
  }

  // Whether a ladder that found nothing for such a request there may find something now: something
  // was freed, a tenth of a second has passed, last resorts were not due, or more was asked for.
  bool is_worth_climbing(const Situation&) const noexcept;
  // Until the request is served, or all rungs are climbed. `climbed` hears of each. True: served,
  // by the last of them.
  bool climb(const Attempt&, const Situation&, FunctionRef<void(const Climbed&)> climbed);

 private:
  std::uint32_t reclaimers() const noexcept {
    return settings_.reclaimers == nullptr ? 0 : settings_.reclaimers->changes();
  }
  bool has_reclaimers() const noexcept {
    return settings_.reclaimers != nullptr && settings_.sync_timeout_ns != 0 &&
           settings_.reclaimers->any();
  }
  // Until one of them has made room, or the request has another end.
  template <class Ends>
  bool reclaim_ends(const Attempt&, const Ends&);
  RungOutcome synchronise_there(const Attempt&, const Situation&);
  RungOutcome wait_there(const Attempt&, const Situation&,
                         FunctionRef<void(const Climbed&)> climbed);
  bool has_waited_in_vain(const Situation&) const noexcept;
  void found_nothing(const Situation&, bool tried_all) noexcept;

  struct Failed {
    std::atomic<std::uint64_t> time_ns{0}, live_bytes{0}, bytes{0};
    std::atomic<std::uint32_t> noted{0};
    std::atomic<bool> tried_all{false}, tried_spill{false};
    std::atomic<std::uint32_t> reclaimers{0};  // Reclaimers::changes()
    // In vain, until then; 0: not since a wait was rewarded.
    std::atomic<std::uint64_t> waited_ns{0}, synchronised_ns{0};
  };
  static constexpr std::uint32_t places = 64;
  const Settings settings_;
  Failed failed_[places];
};

}  // namespace cuwarden::rescue
