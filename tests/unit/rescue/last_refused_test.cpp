// A thread's last refused request: the incidents that count its refusals.
#include "runtime_hooks/rescue/last_refused.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/unit/manual_clock.hpp"

namespace cuwarden::rescue {
namespace {

using Counted = std::vector<std::pair<std::uint32_t, std::uint32_t>>;  // incident, refusals

constexpr std::uint32_t serial = 1;
const Request request{.bytes = 1 << 20, .device = DeviceOrdinal{0}};

Counted served(LastRefused& refused, Clock& clock) {
  Counted counted;
  refused.served(serial, request, clock, [&](IncidentId incident, std::uint32_t times) {
    counted.emplace_back(incident.value, times);
  });
  return counted;
}

TEST(LastRefused, a_served_repeat_counts_for_each_incident_as_often_as_that_was_refused) {
  ManualClock clock;
  LastRefused refused;
  refused.add(serial, request, IncidentId{5}, clock.now_ns());
  refused.add(serial, request, IncidentId{6}, clock.now_ns());
  refused.add(serial, request, IncidentId{5}, clock.now_ns());
  EXPECT_EQ(served(refused, clock), (Counted{{5, 2}, {6, 1}}));
  EXPECT_TRUE(served(refused, clock).empty()) << "the refusals were forgotten";
}

TEST(LastRefused, a_refusal_that_no_incident_counts_adds_nothing_to_a_later_incident) {
  ManualClock clock;
  LastRefused refused;
  refused.add(serial, request, IncidentId{0}, clock.now_ns());
  EXPECT_TRUE(refused.was_refused_before(serial, request, IncidentId{7}));
  refused.add(serial, request, IncidentId{7}, clock.now_ns());
  EXPECT_EQ(served(refused, clock), (Counted{{7, 1}}));
}

}  // namespace
}  // namespace cuwarden::rescue
