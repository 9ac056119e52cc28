// The table of incidents: the refusals that get a row of their own. The test sets the clock.
#include "runtime_hooks/ledger/write/incidents.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/ledger/ledger_parts.hpp"

namespace cuwarden::ledger {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000, hour_ns = 3600 * second_ns;

class LedgerIncidentsTest : public LedgerParts {
 protected:
  Refused refuse(GroupId from, std::uint64_t bytes, std::uint64_t now_ns) {
    const auto refused =
        incidents.refused(from, {.asked = Asked::memory, .result = 2, .bytes = bytes}, {}, now_ns);
    if (refused.first) publish(refused.incident, from);
    return refused;
  }
  Refused fail(const Refused& refused, std::uint64_t bytes, std::uint64_t now_ns) {
    const GroupId from = view(refused.incident).group;
    const auto failed = incidents.failed(
        refused, from, {.asked = Asked::memory, .result = 2, .bytes = bytes}, {}, now_ns);
    if (failed.first) publish(failed.incident, from);
    return failed;
  }
  void publish(IncidentId id, GroupId from) {
    IncidentFacts facts;
    IncidentHoldings holdings;
    incidents.measure(groups.device_of(from), facts, holdings);
    incidents.write(id, facts, holdings);
  }
  IncidentView view(IncidentId id) { return reader().incident(id.value).value(); }

  Incidents incidents{storage};
};

TEST_F(LedgerIncidentsTest, each_call_site_has_a_row_that_counts_its_repeats) {
  const auto first = refuse(group(1), 100, second_ns);
  EXPECT_TRUE(first.first);
  EXPECT_TRUE(refuse(group(2), 100, second_ns).first);
  fail(first, 100, 2 * second_ns);
  const auto again = refuse(group(1), 300, 5 * hour_ns);
  EXPECT_FALSE(again.first);
  EXPECT_EQ(again.incident, first.incident);
  const auto failed = fail(again, 300, 5 * hour_ns);
  EXPECT_FALSE(failed.first);
  EXPECT_EQ(failed.incident, first.incident);
  const IncidentView seen = view(first.incident);
  EXPECT_EQ(seen.bytes, 100u);
  EXPECT_EQ(seen.last_bytes, 300u);
  EXPECT_EQ(seen.repeats, 1u);
  EXPECT_EQ(seen.last_ns, 5 * hour_ns);
}

TEST_F(LedgerIncidentsTest, after_recoveries_a_later_refusal_gets_a_row_of_its_own) {
  const auto first = refuse(group(1), 100, second_ns);
  incidents.recovered(first.incident, 1);
  EXPECT_FALSE(refuse(group(1), 100, 2 * second_ns).first) << "so soon it is the same matter";
  incidents.recovered(first.incident, 1);
  const auto later = refuse(group(1), 200, 5 * hour_ns);
  EXPECT_TRUE(later.first);
  EXPECT_NE(later.incident, first.incident);
  EXPECT_EQ(view(later.incident).bytes, 200u);
  EXPECT_EQ(view(first.incident).repeats, 1u);
  // The last incident was not recovered, so all later refusals are repeats of it.
  EXPECT_FALSE(refuse(group(1), 300, 10 * hour_ns).first);
}

TEST_F(LedgerIncidentsTest, a_program_that_always_recovers_by_itself_has_few_rows) {
  std::uint32_t rows = 0;
  for (std::uint64_t now = second_ns; now < 1000 * hour_ns; now += 20 * second_ns) {
    const auto refused = refuse(group(1), 100, now);
    incidents.recovered(refused.incident, 1);
    rows += refused.first ? 1 : 0;
  }
  EXPECT_GT(rows, 3u);
  EXPECT_LT(rows, 15u);
}

TEST_F(LedgerIncidentsTest,
       a_failure_at_a_call_site_whose_requests_were_all_served_gets_a_row_of_its_own) {
  const auto served = refuse(group(1), 100, second_ns);
  incidents.rescued(served.incident, Rung::retry, 100);
  const auto also_served = refuse(group(1), 200, 2 * second_ns);
  incidents.rescued(also_served.incident, Rung::retry, 200);
  const auto refused = refuse(group(1), 500, 4 * second_ns);
  EXPECT_FALSE(refused.first) << "the request may be served, too";
  EXPECT_EQ(view(refused.incident).last_bytes, 500u) << "the process may die in this request";
  const auto failed = fail(refused, 500, 5 * second_ns);
  EXPECT_TRUE(failed.first);
  EXPECT_NE(failed.incident, served.incident);
  IncidentView before = view(served.incident), after = view(failed.incident);
  EXPECT_EQ(before.repeats, 1u);
  EXPECT_EQ(before.rescued[0], 2u);
  EXPECT_EQ(before.last_bytes, 200u);
  EXPECT_EQ(before.last_ns, 2 * second_ns);
  EXPECT_EQ(before.failed, 0u);
  EXPECT_EQ(after.bytes, 500u);
  EXPECT_EQ(after.time_ns, 5 * second_ns);
  EXPECT_EQ(after.repeats, 0u);
  // Later refusals are counted in the new row, whether they are served or not.
  EXPECT_EQ(fail(refuse(group(1), 600, 6 * second_ns), 600, 6 * second_ns).incident,
            failed.incident);
  const auto later = refuse(group(1), 50, 7 * second_ns);
  incidents.rescued(later.incident, Rung::retry, 50);
  EXPECT_EQ(later.incident, failed.incident);
  after = view(failed.incident);
  EXPECT_EQ(after.repeats, 2u);
  EXPECT_EQ(after.failed, 2u);
  EXPECT_EQ(after.rescued[0], 1u);
  EXPECT_EQ(storage.rows<Group>(RegionId::groups)[1].failures.load(), 2u);
}

TEST_F(LedgerIncidentsTest, threads_that_fail_at_such_a_call_site_share_the_new_row) {
  const auto served = refuse(group(1), 100, second_ns);
  incidents.rescued(served.incident, Rung::retry, 100);
  const auto one = refuse(group(1), 500, 2 * second_ns),
             other = refuse(group(1), 500, 2 * second_ns);
  const auto first = fail(one, 500, 3 * second_ns), next = fail(other, 500, 4 * second_ns);
  EXPECT_TRUE(first.first);
  EXPECT_FALSE(next.first);
  EXPECT_EQ(next.incident, first.incident);
  EXPECT_EQ(view(first.incident).repeats, 1u);
  EXPECT_EQ(view(first.incident).failed, 2u);
  EXPECT_EQ(view(served.incident).repeats, 0u);
}

TEST_F(LedgerIncidentsTest, a_rung_that_was_under_way_gets_its_end_recorded) {
  const auto refused = refuse(group(1), 100, second_ns), other = refuse(group(2), 100, second_ns);
  incidents.add_rung(refused.incident, {1, Rung::retry, RungOutcome::no_memory, 5, {}});
  incidents.add_rung(refused.incident, {2, Rung::wait, RungOutcome::under_way, 0, {}});
  incidents.add_rung(other.incident, {2, Rung::wait, RungOutcome::under_way, 0, {}});
  incidents.add_rung(refused.incident, {2, Rung::wait, RungOutcome::timed_out, 7, {}});
  const Reader read = reader();
  ASSERT_EQ(read.rows(RegionId::incident_rungs), 4u);
  EXPECT_EQ(read.incident_rung(1)->outcome, RungOutcome::no_memory);
  EXPECT_EQ(read.incident_rung(2)->outcome, RungOutcome::timed_out);
  EXPECT_EQ(read.incident_rung(2)->duration_ns, 7u);
  EXPECT_EQ(read.incident_rung(3)->outcome, RungOutcome::under_way);
}

TEST_F(LedgerIncidentsTest, another_process_is_read_as_it_was_written) {
  const auto refused = refuse(group(1), 100, second_ns);
  std::string program = "/opt/python3";
  const OtherProcess given{.pid = 42,
                           .parent = 7,
                           .bytes = 100,
                           .seen_by = SeenBy::device_file,
                           .run_state = RunState::zombie,
                           .is_of_another_user = true,
                           .start_realtime_ns = -5,
                           .program = program,
                           .parent_program = "bash",
                           .user = "alice",
                           .job = "4711",
                           .container = "c",
                           .pod = "p",
                           .unit = "u"};
  const OtherProcess kept = incidents.add_process(refused.incident, given);
  program.clear();
  EXPECT_EQ(kept.program, "/opt/python3") << "the text lies in the ledger";
  const auto read = reader().incident_process(1).value();
  EXPECT_EQ(read.incident, refused.incident);
  for (const OtherProcess& copy : {kept, static_cast<const OtherProcess&>(read)}) {
    EXPECT_EQ(copy.pid, 42u);
    EXPECT_EQ(copy.parent, 7u);
    EXPECT_EQ(copy.bytes, 100u);
    EXPECT_EQ(copy.seen_by, SeenBy::device_file);
    EXPECT_EQ(copy.run_state, RunState::zombie);
    EXPECT_TRUE(copy.is_of_another_user);
    EXPECT_EQ(copy.start_realtime_ns, -5);
    EXPECT_EQ(copy.program, "/opt/python3");
    EXPECT_EQ(copy.parent_program, "bash");
    EXPECT_EQ(copy.user, "alice");
    EXPECT_EQ(copy.job, "4711");
    EXPECT_EQ(copy.container, "c");
    EXPECT_EQ(copy.pod, "p");
    EXPECT_EQ(copy.unit, "u");
  }
  incidents.add_process(refused.incident, {.pid = 43});
  EXPECT_TRUE(reader().incident_process(2)->program.empty());
  EXPECT_FALSE(reader().incident_process(2)->is_of_another_user);
  EXPECT_EQ(reader().incident_process(2)->bytes, unknown_value);
  EXPECT_FALSE(reader().incident_process(3));
}

TEST_F(LedgerIncidentsTest, three_processes_are_named_of_each_way_in_which_they_are_found) {
  NamedProcesses named;
  for (std::uint32_t pid = 1; pid <= 5; ++pid) named.add({.pid = pid});
  for (std::uint32_t pid = 11; pid <= 15; ++pid)
    named.add({.pid = pid, .seen_by = SeenBy::device_file});
  std::vector<std::uint32_t> pids;
  for (const OtherProcess& process : named.all()) pids.push_back(process.pid);
  EXPECT_EQ(pids, std::vector<std::uint32_t>({1, 2, 3, 11, 12, 13}));
}

TEST_F(LedgerIncidentsTest, processes_that_are_not_named_are_counted_by_their_state) {
  NamedProcesses named;
  for (std::uint32_t pid = 1; pid <= 5; ++pid)
    named.add({.pid = pid, .run_state = RunState::alive});
  named.add({.pid = 6, .run_state = RunState::zombie});
  EXPECT_EQ(named.unnamed(SeenBy::nvml, RunState::alive), 2u);
  EXPECT_EQ(named.unnamed(SeenBy::nvml, RunState::zombie), 1u);
  EXPECT_EQ(named.unnamed(SeenBy::device_file, RunState::alive), 0u);
}

TEST_F(LedgerIncidentsTest, many_failures_at_once_at_such_a_call_site_take_one_row) {
  const auto served = refuse(group(1), 100, second_ns);
  incidents.rescued(served.incident, Rung::retry, 100);
  std::vector<Refused> in_flight;
  for (int i = 0; i < 300; ++i) in_flight.push_back(refuse(group(1), 500, 2 * second_ns));
  for (const auto& one : in_flight) fail(one, 500, 3 * second_ns);
  EXPECT_EQ(storage.used(RegionId::incidents), served.incident.value + 2u);
}

TEST_F(LedgerIncidentsTest, each_threads_request_is_counted_once_however_it_ends) {
  for (std::uint32_t site = 1; site <= 50; ++site) {
    const GroupId from = group(site);
    const IncidentFacts refusal{.asked = Asked::memory, .result = 2, .bytes = 5};
    const std::uint64_t first = storage.used(RegionId::incidents);
    std::atomic<std::uint64_t> failures{0};
    const auto work = [&](std::uint32_t seed) {
      std::mt19937 random(seed);
      for (int i = 0; i < 50; ++i) {
        const auto refused = incidents.refused(from, refusal, {}, second_ns);
        if (refused.first) publish(refused.incident, from);
        if (random() % 4 == 0) std::this_thread::yield();
        if (random() % 20 != 0) {
          incidents.rescued(refused.incident, Rung::retry, 5);
          continue;
        }
        const auto failed = incidents.failed(refused, from, refusal, {}, second_ns);
        if (failed.first) publish(failed.incident, from);
        ++failures;
      }
    };
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < 8; ++i) threads.emplace_back(work, site * 8 + i);
    for (std::thread& thread : threads) thread.join();
    std::uint64_t refused = 0, rescued = 0, failed = 0, rows = 0;
    for (std::uint64_t i = first; i < storage.used(RegionId::incidents); ++i) {
      const auto row = reader().incident(i);
      if (!row) continue;  // another thread made the row
      ++rows;
      refused += row->repeats + 1;
      rescued += row->rescued[0];
      failed += row->failed;
    }
    EXPECT_EQ(refused, 400u);
    EXPECT_EQ(failed, failures);
    EXPECT_EQ(rescued, 400u - failures);
    EXPECT_LE(rows, 2u);
    EXPECT_EQ(storage.rows<Group>(RegionId::groups)[from.value].failures.load(), failures);
  }
}

TEST_F(LedgerIncidentsTest, the_first_failed_request_keeps_its_row_though_others_were_served) {
  const auto first = refuse(group(1), 100, second_ns), other = refuse(group(1), 100, second_ns);
  incidents.rescued(other.incident, Rung::retry, 100);
  const auto failed = fail(first, 100, 2 * second_ns);
  EXPECT_EQ(failed.incident, first.incident);
  EXPECT_EQ(fail(refuse(group(1), 100, 3 * second_ns), 100, 3 * second_ns).incident,
            first.incident);
}

TEST_F(LedgerIncidentsTest, without_room_a_refusal_counts_in_an_older_row) {
  const GroupId known = group(1);
  const auto first = refuse(known, 100, second_ns);
  for (std::uint32_t stack = 2; stack < 2000; ++stack) refuse(group(stack), 1, second_ns);
  incidents.rescued(first.incident, Rung::retry, 100);
  const auto later = refuse(known, 200, 5 * hour_ns);
  EXPECT_FALSE(later.first);
  EXPECT_EQ(view(first.incident).repeats, 1u);
  const auto failed = fail(later, 200, 7 * hour_ns);
  EXPECT_EQ(failed.incident, first.incident);
  EXPECT_EQ(storage.rows<Group>(RegionId::groups)[known.value].failures.load(), 1u);
  EXPECT_EQ(view(first.incident).repeats, 1u);
}

TEST_F(LedgerIncidentsTest,
       the_slabs_of_a_moment_are_kept_as_a_whole_or_not_and_the_next_moment_has_room) {
  const auto first = refuse(group(1), 100, second_ns), next = refuse(group(2), 100, second_ns);
  const std::uint64_t most =
      storage.geometry().regions[index_of(RegionId::incident_slabs)].capacity_bytes /
      sizeof(IncidentSlab);
  std::vector<SlabRow> slabs;
  const std::uint64_t half = (most - 1) / 2;
  for (std::uint64_t i = 0; i <= half; ++i) slabs.push_back({{i << 21}, i, 512 * i, {}});
  incidents.add_slabs(first.incident, slabs);
  EXPECT_EQ(reader().rows(RegionId::incident_slabs), 1u) << "row 0 is reserved";
  slabs.pop_back();
  incidents.add_slabs(first.incident, slabs);
  ASSERT_EQ(reader().rows(RegionId::incident_slabs), half + 1);
  const auto last = reader().incident_slab(half).value();
  EXPECT_EQ(last.incident, first.incident);
  EXPECT_EQ(last.address.value, (half - 1) << 21);
  EXPECT_EQ(last.live_count, half - 1);
  EXPECT_EQ(last.live_bytes, 512 * (half - 1));
  incidents.add_slabs(next.incident, slabs);
  incidents.add_slabs(next.incident, {slabs.data(), 3});
  ASSERT_EQ(reader().rows(RegionId::incident_slabs), half + 4);
}

TEST_F(LedgerIncidentsTest, a_slab_names_its_groups_in_order_and_a_damaged_name_is_none) {
  const GroupId one = group(1), other = group(2);
  const auto refused = refuse(one, 100, second_ns);
  const SlabRow slab{
      .address = {2 << 20}, .live_count = 5, .live_bytes = 2560, .groups = {other, one}};
  incidents.add_slabs(refused.incident, {&slab, 1});
  using Groups = std::array<GroupId, slab_group_count>;
  EXPECT_EQ(reader().incident_slab(1)->groups, (Groups{other, one}));
  IncidentSlab& row = storage.rows<IncidentSlab>(RegionId::incident_slabs)[1];
  row.groups[0] = static_cast<std::uint32_t>(reader().rows(RegionId::groups));
  row.groups[2] = UINT32_MAX;
  EXPECT_EQ(reader().incident_slab(1)->groups, (Groups{GroupId{}, one}));
  EXPECT_EQ(reader().incident_slab(1)->live_count, 5u);
}

}  // namespace
}  // namespace cuwarden::ledger
