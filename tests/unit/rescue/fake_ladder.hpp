// A ladder on a fake driver. A test says how much memory there is, what gives memory back, and
// which streams and contexts must not be touched.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime_hooks/rescue/ladder.hpp"
#include "tests/unit/manual_clock.hpp"

namespace cuwarden::rescue {
struct FakeDriver {
  std::map<CUstream, int> polls_until_idle;  // for each stream; negative: it never becomes idle
  std::map<CUevent, CUstream> events;        // events that exist, with their streams
  std::uintptr_t made = 0;
  std::vector<CUstream> recorded, synchronised;
  std::atomic<int> queries = 0;
  std::vector<CUcontext> entered;
  std::size_t left = 0;
  CUresult event_state = CUDA_SUCCESS;
  std::mutex lock;
  // Set by whichever thread called last.
  CUcontext made_current = nullptr;
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
};
inline FakeDriver fake;

inline driver::RealDriver fake_functions() {
  driver::RealDriver real;
  real.cuEventCreate = [](CUevent* event, unsigned) {
    *event = reinterpret_cast<CUevent>(++fake.made);
    return fake.events[*event] = nullptr, CUDA_SUCCESS;
  };
  real.cuEventRecord = [](CUevent event, CUstream stream) {
    fake.recorded.push_back(stream);
    return fake.events.at(event) = stream, CUDA_SUCCESS;
  };
  real.cuEventQuery = [](CUevent event) {
    ++fake.queries;
    int& polls = fake.polls_until_idle[fake.events.at(event)];
    if (polls == 0) return fake.event_state;
    polls -= polls > 0 ? 1 : 0;
    return CUDA_ERROR_NOT_READY;
  };
  real.cuEventSynchronize = [](CUevent event) {
    // The event must have come; a real driver would wait for the device here.
    EXPECT_EQ(fake.polls_until_idle[fake.events.at(event)], 0);
    return fake.synchronised.push_back(fake.events.at(event)), CUDA_SUCCESS;
  };
#if CUDA_VERSION >= 12050
  // A null stream stands for all streams of the context.
  real.cuCtxRecordEvent = [](CUcontext, CUevent event) {
    return fake.events.at(event) = nullptr, CUDA_SUCCESS;
  };
#endif
  real.cuStreamSynchronize = [](CUstream stream) {
    EXPECT_EQ(fake.polls_until_idle[nullptr], 0) << "this would wait";
    return fake.synchronised.push_back(stream), CUDA_SUCCESS;
  };
  real.cuEventDestroy_v2 = [](CUevent event) {
    EXPECT_EQ(fake.events.erase(event), 1u);
    return CUDA_SUCCESS;
  };
  real.cuCtxPushCurrent_v2 = [](CUcontext context) {
    return fake.entered.push_back(context), CUDA_SUCCESS;
  };
  real.cuCtxPopCurrent_v2 = [](CUcontext*) { return fake.left++, CUDA_SUCCESS; };
  real.cuCtxSetCurrent = [](CUcontext context) {
    const std::lock_guard locked(fake.lock);
    return fake.made_current = context, CUDA_SUCCESS;
  };
  real.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode* mode) {
    const std::lock_guard locked(fake.lock);
    return fake.capture_mode = *mode, CUDA_SUCCESS;
  };
  return real;
}

inline CUstream stream(std::uintptr_t number) { return reinterpret_cast<CUstream>(number); }

using RungName = ledger::Rung;

// Means that do as the test says, and count the calls.
struct FakeMeans final : Means {
  bool is_captured() override { return captured; }
  bool may_enter(ContextId context) override { return alive.contains(context.value); }
  bool trim() override { return trimmed = has_idle_pools; }
  bool has_pool() override { return pool_is_there; }
  std::optional<bool> give_back_unused() override {
    if (pool_must_not) return std::nullopt;
    return pool_emptied = pool_keeps;
  }
  bool can_mesh() override { return may_mesh; }
  RungOutcome mesh() override { return ++meshed, mesh_outcome; }
  bool is_unsafe_to_reclaim(std::string_view modules) override { return modules == unsafe_modules; }
  bool may_others_help() override { return others_help; }
  serving::SpillAttempt spill() override {
    return ++spills, serving::SpillAttempt{spill_outcome, 1};
  }

  bool captured = false;
  std::set<std::uint64_t> alive;  // contexts that may be entered
  bool has_idle_pools = false, trimmed = false;
  bool pool_is_there = false, pool_keeps = false, pool_emptied = false, pool_must_not = false;
  bool may_mesh = false;
  RungOutcome mesh_outcome = RungOutcome::served;
  int meshed = 0;
  std::string_view unsafe_modules = "not safe";
  bool others_help = true;
  RungOutcome spill_outcome = RungOutcome::served;
  int spills = 0;
};

class LadderTest : public testing::Test {
 protected:
  LadderTest() {
    std::destroy_at(&fake);
    std::construct_at(&fake);
  }
  ~LadderTest() override {
    EXPECT_TRUE(fake.events.empty()) << "events that nobody destroys";
    EXPECT_EQ(fake.entered.size(), fake.left);
  }

  using Rungs = std::vector<std::pair<RungName, RungOutcome>>;
  // Climbs a new ladder. Returns the rungs that were climbed, with their outcomes.
  Rungs climb(const Settings& given, bool may_wait = true, bool on_device = true) {
    Ladder ladder(given, clock);
    return climb(ladder, may_wait, on_device);
  }
  Rungs climb(Ladder& ladder, bool may_wait = true, bool on_device = true) {
    return climb(ladder, {.device = 1, .is_last_resort_due = may_wait, .can_spill = can_spill},
                 on_device);
  }
  Rungs climb(Ladder& ladder, const Situation& situation, bool on_device = true,
              std::uint64_t bytes = 5000) {
    Rungs all;
    const auto request = [&] {
      ++requests;
      return is_there() ? CUDA_SUCCESS : refusal;
    };
    const Request asked{.bytes = bytes, .device = on_device ? DeviceOrdinal{0} : no_device};
    const RefusedCall call{.real = real,
                           .pending = pending,
                           .context = here,
                           .request = asked,
                           .ask_driver = request,
                           .means = means};
    const Rescued rescued = ladder.climb(call, situation, [&](const RungReport& report) {
      if (report.outcome == RungOutcome::under_way) return begun_rungs.push_back(report.rung);
      all.emplace_back(report.rung, report.outcome);
      while_told(report.rung, report.outcome);
      if (!report.reclaimer.empty()) named.emplace_back(report.reclaimer);
    });
    served = rescued.served;
    return all;
  }

  ManualClock clock;
  FakeMeans means;
  std::function<bool(ContextId)> may_enter = [this](ContextId context) {
    return means.may_enter(context);
  };
  const driver::RealDriver real = fake_functions();
  const ContextId here{0x700}, elsewhere{0x800};
  PendingFrees pending;
  std::function<bool()> is_there = [] { return false; };
  std::function<void(RungName, RungOutcome)> while_told = [](RungName, RungOutcome) {};
  bool can_spill = false;
  std::vector<std::string> named;  // names of the reclaimers that were called
  std::vector<RungName> begun_rungs;
  bool served = false;
  int requests = 0;
  CUresult refusal = CUDA_ERROR_OUT_OF_MEMORY;
  const Settings settings{.enabled = true, .sync_timeout_ns = 200'000'000};
};

}  // namespace cuwarden::rescue
