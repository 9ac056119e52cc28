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

}  // namespace
}  // namespace cuwarden::hooks
