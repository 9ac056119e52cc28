// Rungs that are left out for a refused request: each has the reason, also in the ledger.
#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "tests/unit/rescue/reclaimers_fixture.hpp"

namespace cuwarden::rescue {
namespace {

using Reasons = std::map<RungName, LeftOut>;

class LeftOutTest : public ReclaimersTest {
 protected:
  LeftOutTest() {
    waits.wait_ns = 10'000'000;
    all_on = waits;
    all_on.spill.bytes = 500 * pool::MiB;
  }
  Reasons reasons_with(const Settings& given, const RescueConditions& conditions,
                       bool on_device = true) {
    Ladder ladder(given, clock, reclaimers);
    climb(ladder, conditions, on_device);
    return left_out;
  }
  LeftOut reason_to_wait_not(const RescueConditions& conditions) {
    return reasons_with(waits, conditions)[RungName::wait];
  }
  ledger::IncidentView incident_in_ledger() const {
    ledger::ReadError error;
    return ledger::Reader::open(writer->file.bytes(), error)->incident(incident.value).value();
  }
  void publish_incident() {
    ledger::IncidentHoldings holdings;
    writer->incidents.write(incident, {}, holdings);
  }
  Settings waits = settings, all_on;
};

TEST_F(LeftOutTest, settings_and_empty_lists_are_told_apart) {
  EXPECT_EQ(reasons_with(settings, {}), (Reasons{{RungName::give_back, LeftOut::nothing_there},
                                                 {RungName::mesh, LeftOut::nothing_there},
                                                 {RungName::reclaim, LeftOut::nothing_there},
                                                 {RungName::wait, LeftOut::turned_off},
                                                 {RungName::spill, LeftOut::turned_off}}));
  add("cache", make());
  Settings no_time = with_reclaimers;
  no_time.sync_timeout_ns = 0;
  EXPECT_EQ(reasons_with(no_time, {})[RungName::reclaim], LeftOut::turned_off);
}

TEST_F(LeftOutTest, a_rung_that_was_not_needed_has_no_reason) {
  is_there = [] { return true; };
  EXPECT_EQ(reasons_with(settings, {}), Reasons());
}

TEST_F(LeftOutTest, a_request_for_host_memory_leaves_out_rungs_of_the_device) {
  add("cache", make());
  const RescueConditions conditions{.spill_obstacle = LeftOut::host_memory};
  EXPECT_EQ(reasons_with(all_on, conditions, false),
            (Reasons{{RungName::synchronise, LeftOut::host_memory},
                     {RungName::trim, LeftOut::host_memory},
                     {RungName::give_back, LeftOut::nothing_there},
                     {RungName::mesh, LeftOut::host_memory},
                     {RungName::spill, LeftOut::host_memory}}));
}

TEST_F(LeftOutTest, an_allocator_that_asks_again_leaves_out_rungs_that_cost_something) {
  leave_one_block_in_each_page();
  add("cache", make());
  const RescueConditions conditions{.is_last_resort_due = false, .spill_obstacle = LeftOut::none};
  EXPECT_EQ(reasons_with(all_on, conditions), (Reasons{{RungName::mesh, LeftOut::asks_again},
                                                       {RungName::reclaim, LeftOut::asks_again},
                                                       {RungName::wait, LeftOut::asks_again},
                                                       {RungName::spill, LeftOut::asks_again}}));
}

TEST_F(LeftOutTest, a_request_larger_than_the_device_leaves_out_all_but_spilling) {
  leave_one_block_in_each_page();
  add("cache", make());
  fake.total_bytes = bytes - 1;
  const RescueConditions conditions{.spill_obstacle = LeftOut::too_small, .fits_device = false};
  EXPECT_EQ(reasons_with(all_on, conditions), (Reasons{{RungName::mesh, LeftOut::too_large},
                                                       {RungName::reclaim, LeftOut::too_large},
                                                       {RungName::wait, LeftOut::too_large},
                                                       {RungName::spill, LeftOut::too_small}}));
}

TEST_F(LeftOutTest, a_request_that_does_not_fit_beside_the_processs_own_memory_does_not_wait) {
  fake.total_bytes = bytes + 100;
  EXPECT_EQ(reason_to_wait_not({.implicit_bytes = 101}), LeftOut::own_memory);
  EXPECT_EQ(reason_to_wait_not({.implicit_bytes = 100}), LeftOut::none);
}

TEST_F(LeftOutTest, a_call_that_fails_although_much_is_free_does_not_wait) {
  thing = ledger::Asked::stream;
  bytes = 0;
  pool::driver->free_bytes = 3072 * pool::MiB;
  EXPECT_EQ(reason_to_wait_not({}), LeftOut::much_is_free);
}

TEST_F(LeftOutTest, a_request_for_which_the_hosts_page_cache_has_the_memory_does_not_wait) {
  fake.total_bytes = bytes + 100;
  pool::driver->is_integrated = true;
  EXPECT_EQ(reason_to_wait_not({}), LeftOut::page_cache);
  bytes = std::uint64_t{1} << 50;  // more than any host has
  fake.total_bytes = 2 * bytes;
  EXPECT_EQ(reason_to_wait_not({}), LeftOut::none);
}

TEST_F(LeftOutTest, memory_of_another_device_than_the_current_one_is_not_moved) {
  leave_one_block_in_each_page();
  current_device = DeviceOrdinal{1};
  EXPECT_EQ(reasons_with(settings, {})[RungName::mesh], LeftOut::other_device);
}

TEST_F(LeftOutTest, memory_is_not_moved_if_the_driver_cannot_tell_that_a_context_is_idle) {
  leave_one_block_in_each_page();
  auto& functions = const_cast<driver::RealDriver&>(real);
  functions.cuEventQuery = nullptr;
  EXPECT_EQ(reasons_with(settings, {})[RungName::mesh], LeftOut::not_supported);
}

TEST_F(LeftOutTest, the_pools_know_why_a_request_is_not_spilled) {
  tracking::Allocation asked{.kind = Kind::device, .bytes = 8 * pool::MiB};
  const tracking::CurrentContext now{here, device};
  EXPECT_EQ(pools.spill_obstacle(asked, now, device), LeftOut::none);
  EXPECT_EQ(pools.spill_obstacle(asked, now, DeviceOrdinal{1}), LeftOut::other_device);
  asked.kind = Kind::stream_ordered;
  EXPECT_EQ(pools.spill_obstacle(asked, now, device), LeftOut::memory_pool)
      << "the driver does not tell the device's memory pool";
  asked.bytes = pool::Spill::largest_shared_bytes;
  EXPECT_EQ(pools.spill_obstacle(asked, now, device), LeftOut::too_small);
}

TEST_F(LeftOutTest, a_request_that_is_spilled_after_a_vain_wait_of_another_did_not_wait_again) {
  bytes = 8 * pool::MiB;
  pool::driver->free_bytes = process.host_left = 0;
  Ladder ladder(all_on, clock, reclaimers);
  const RescueConditions conditions{.spill_obstacle = LeftOut::none};
  climb(ladder, conditions);
  EXPECT_FALSE(left_out.contains(RungName::wait)) << "the request waited";
  process.host_left = UINT64_MAX;
  EXPECT_EQ(climb(ladder, conditions).back(), std::pair(RungName::spill, RungOutcome::served));
  EXPECT_EQ(left_out[RungName::wait], LeftOut::in_vain_before);
}

TEST_F(LeftOutTest, a_confined_thread_only_repeats_the_request) {
  begin_incident();
  publish_incident();
  detail::asks_confinement.store([]() noexcept { return true; });
  climb(settings);
  detail::asks_confinement.store(nullptr);
  EXPECT_EQ(left_out.size(), ledger::rung_count - 1);
  for (const auto& [rung, reason] : left_out) {
    EXPECT_NE(rung, RungName::retry);
    EXPECT_EQ(reason, LeftOut::confined);
  }
}

TEST_F(LeftOutTest, the_ledger_has_a_reason_before_the_next_rung_runs) {
  begin_incident();
  publish_incident();
  int waits_seen = 0;
  is_there = [&] {
    const auto reasons = incident_in_ledger().left_out;
    const auto reason_of = [&](RungName rung) { return reasons[static_cast<std::size_t>(rung)]; };
    const bool is_waiting = last_rung().rung == RungName::wait;
    waits_seen += is_waiting ? 1 : 0;
    EXPECT_EQ(reason_of(RungName::give_back), is_waiting ? LeftOut::nothing_there : LeftOut::none);
    EXPECT_EQ(reason_of(RungName::spill), LeftOut::none);
    return false;
  };
  climb(waits);
  EXPECT_GT(waits_seen, 0);
  EXPECT_EQ(incident_in_ledger().left_out[static_cast<std::size_t>(RungName::spill)],
            LeftOut::turned_off);
}

TEST_F(LeftOutTest, reasons_are_copied_to_an_incident_that_begins_after_the_rungs) {
  begin_incident();
  publish_incident();
  TriedRungs tried(*writer, {});
  tried.leave_out(RungName::mesh, LeftOut::other_device);
  EXPECT_EQ(incident_in_ledger().left_out[static_cast<std::size_t>(RungName::mesh)], LeftOut::none);
  tried.write(incident);
  EXPECT_EQ(incident_in_ledger().left_out[static_cast<std::size_t>(RungName::mesh)],
            LeftOut::other_device);
}

}  // namespace
}  // namespace cuwarden::rescue
