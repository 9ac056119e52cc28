// The memory limit of a device in MPS's environment variable. Text that is not understood gives
// none.
#include "shim/probes/mps_limit.hpp"

#include <gtest/gtest.h>

namespace cuwarden::shim {
namespace {

constexpr std::uint64_t KiB = 1 << 10, MiB = 1 << 20, GiB = 1 << 30;

std::optional<std::uint64_t> limit(std::string_view text, int device = 0) {
  return mps_limit_of(text, DeviceOrdinal{device});
}

TEST(MpsLimit, the_limit_is_that_of_the_device) {
  EXPECT_EQ(limit("0=2G,1=512M"), 2 * GiB);
  EXPECT_EQ(limit("0=2G,1=512M", 1), 512 * MiB);
  EXPECT_EQ(limit("0=2G,1=512M", 2), std::nullopt);
  EXPECT_EQ(limit("10=2G,1=512M", 0), std::nullopt);
  EXPECT_EQ(limit("10=2G,1=512M", 10), 2 * GiB);
  EXPECT_EQ(limit("0=2G", -1), std::nullopt);
}

TEST(MpsLimit, the_limit_may_have_any_unit_that_MPS_accepts) {
  EXPECT_EQ(limit("0=512MB"), 512 * MiB);
  EXPECT_EQ(limit("0=512MiB"), 512 * MiB);
  EXPECT_EQ(limit("0=64k"), 64 * KiB);
  EXPECT_EQ(limit("0=1T"), 1024 * GiB);
  EXPECT_EQ(limit("0=1073741824"), GiB);
  EXPECT_EQ(limit("0=100B"), 100u);
  EXPECT_EQ(limit(" 0 = 3G , 1 = 4G "), 3 * GiB);
  EXPECT_EQ(limit(" 0 = 3G , 1 = 4G ", 1), 4 * GiB);
}

TEST(MpsLimit, the_limit_is_unknown_if_the_text_is_not_understood) {
  for (const char* text : {"", "0", "0=", "0=G", "0=-1G", "0=2X", "0=2Gi", "0=2GG", "2G", "=2G",
                           ",", "0=99999999999999999999", "0=18446744073709551615G", "GPU-1234=2G"})
    EXPECT_EQ(limit(text), std::nullopt) << text;
  EXPECT_EQ(limit("nonsense,0=2G"), 2 * GiB) << "the parts that are understood count";
}

}  // namespace
}  // namespace cuwarden::shim
