// Readings of how full a device is, while the program allocates.
#include "runtime_hooks/tracking/devices/device_readings.hpp"

#include "tests/unit/hooks/fake_driver.hpp"

namespace cuwarden::hooks {
namespace {

constexpr std::uint64_t millisecond = 1'000'000;

class DeviceReadingsTest : public HooksTest {
 protected:
  DeviceReadingsTest() { clock.advance(millisecond); }
  // Returns the driver's functions, of which cuMemGetInfo_v2 takes `takes_ns`.
  static driver::RealDriver slow() {
    driver::RealDriver functions = fake_functions();
    functions.cuMemGetInfo_v2 = [](size_t* free, size_t* total) {
      ++fake.readings;
      clock.advance(takes_ns);
      return *free = 100, *total = 1000, CUDA_SUCCESS;
    };
    return functions;
  }
  // Returns true if the device is read at this time.
  bool is_read_at(std::uint64_t now_ns) {
    const int before = fake.readings;
    readings.read_now_and_then(now_ns);
    return fake.readings != before;
  }

  static inline ManualClock clock;
  static inline std::uint64_t takes_ns;
  const driver::RealDriver functions = slow();
  tracking::DeviceReadings readings{*writer, functions, session.queries, session.memory_pools,
                                    nullptr, clock};
};

TEST_F(DeviceReadingsTest, a_device_is_read_once_in_100_ms) {
  takes_ns = 3'000;
  EXPECT_TRUE(is_read_at(0));
  EXPECT_FALSE(is_read_at(99 * millisecond));
  EXPECT_TRUE(is_read_at(100 * millisecond));
}

TEST_F(DeviceReadingsTest, slow_readings_take_a_thousandth_of_the_time) {
  takes_ns = 2 * millisecond;
  EXPECT_TRUE(is_read_at(0));
  EXPECT_TRUE(is_read_at(100 * millisecond)) << "the first one may have had to wait";
  EXPECT_FALSE(is_read_at(2099 * millisecond));
  takes_ns = 3'000;
  EXPECT_TRUE(is_read_at(2100 * millisecond));
  EXPECT_TRUE(is_read_at(2200 * millisecond)) << "the last reading was fast";
  takes_ns = 60'000 * millisecond;
  EXPECT_TRUE(is_read_at(2300 * millisecond));
  EXPECT_TRUE(is_read_at(2400 * millisecond));
  EXPECT_FALSE(is_read_at(12'399 * millisecond));
  EXPECT_TRUE(is_read_at(12'400 * millisecond)) << "10 s later at most";
}

// Counts the intervals that it is told of.
struct IntervalCounter final : tracking::ReadingListener {
  bool device_was_read(DeviceOrdinal, const driver::DeviceReading&,
                       std::uint64_t) noexcept override {
    return false;
  }
  void interval_has_passed(DeviceOrdinal) noexcept override { ++intervals; }
  int intervals = 0;
};

TEST_F(DeviceReadingsTest, intervals_are_told_of_while_readings_are_too_slow_to_be_taken) {
  IntervalCounter counter;
  tracking::DeviceReadings slow_readings{*writer,  functions, session.queries, session.memory_pools,
                                         &counter, clock};
  takes_ns = 60'000 * millisecond;
  fake.readings = 0;
  for (std::uint64_t now_ms = 0; now_ms <= 2'000; now_ms += 50)
    slow_readings.read_now_and_then(now_ms * millisecond);
  EXPECT_EQ(fake.readings, 2);
  EXPECT_EQ(counter.intervals, 21);
}

}  // namespace
}  // namespace cuwarden::hooks
