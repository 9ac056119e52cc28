// The limit on a device's memory that a cgroup has, read from a fake NVML that answers as a test
// says.
#include "shim/probes/nvml_cgroup_limit.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/unit/shim/fake_nvml.hpp"

namespace cuwarden::shim {
namespace {

class NvmlCgroupLimitTest : public testing::Test {
 protected:
  void SetUp() override { use(FAKE_NVML_3); }

  void use(const char* library) {
    library_ = library;
    fake_ = load_fake_nvml(library, gpu_text);
    ASSERT_NE(fake_, nullptr) << dlerror();
  }
  // Returns the limit and the used bytes as a text such as "10 of which 4".
  std::string limit(const char* cgroup) {
    const auto found =
        read_nvml_cgroup_limit(std::span<const char, 16>(device_uuid, 16), cgroup, library_);
    return found ? std::to_string(found->limit_bytes) + " of which " +
                       std::to_string(found->used_bytes)
                 : "none";
  }

  const char* library_ = nullptr;
  FakeNvml* fake_ = nullptr;
};

TEST_F(NvmlCgroupLimitTest, the_limit_is_that_of_the_cgroup_or_of_one_above) {
  fake_->limits[0] = {"/sys/fs/cgroup/a", 10, 4};
  EXPECT_EQ(limit("/sys/fs/cgroup/a"), "10 of which 4");
  EXPECT_EQ(limit("/sys/fs/cgroup/a/b/c"), "10 of which 4");
  EXPECT_EQ(limit("/sys/fs/cgroup"), "none");
  EXPECT_EQ(limit("/sys/fs/cgroup/ab"), "none");
  EXPECT_EQ(fake_->inits, 4);
  EXPECT_EQ(fake_->shutdowns, 4);
}

TEST_F(NvmlCgroupLimitTest, the_top_of_all_cgroups_may_have_a_limit) {
  fake_->limits[0] = {"/sys/fs/cgroup", 10, 4};
  EXPECT_EQ(limit("/sys/fs/cgroup/a"), "10 of which 4");
  EXPECT_EQ(limit("/sys/fs/cgroup"), "10 of which 4");
}

TEST_F(NvmlCgroupLimitTest, the_nearest_limit_counts_alone_without_the_kernels_controller) {
  fake_->limits[0] = {"/sys/fs/cgroup/a/b", 10, 4};
  fake_->limits[1] = {"/sys/fs/cgroup/a", 100, 95};
  EXPECT_EQ(limit("/sys/fs/cgroup/a/b/c"), "10 of which 4");
}

TEST_F(NvmlCgroupLimitTest, the_limit_that_leaves_fewest_bytes_counts_with_the_kernels_controller) {
  const auto top =
      std::filesystem::temp_directory_path() / ("cgroup-limit-test-" + std::to_string(getpid()));
  std::filesystem::create_directories(top / "b");
  std::ofstream(top / "b/dmem.max") << "";
  // A path that only begins like that of a cgroup's folder.
  const std::string above = "/sys/fs/cgroup/../../.." + top.string(), cgroup = above + "/b";
  fake_->limits[0] = {cgroup.c_str(), 10, 4};
  fake_->limits[1] = {above.c_str(), 100, 95};
  EXPECT_EQ(limit(cgroup.c_str()), "100 of which 95");
  fake_->limits[1].used = 90;
  EXPECT_EQ(limit(cgroup.c_str()), "10 of which 4");
  fake_->limits[1].used = 200;  // more than the limit, which was set later
  EXPECT_EQ(limit(cgroup.c_str()), "100 of which 200");
  std::filesystem::remove_all(top);
}

TEST_F(NvmlCgroupLimitTest, a_limit_that_is_not_set_is_none) {
  fake_->limits[0] = {"/sys/fs/cgroup/a", ~0ull, 4};
  EXPECT_EQ(limit("/sys/fs/cgroup/a"), "none");
}

TEST_F(NvmlCgroupLimitTest, a_limit_that_NVML_does_not_tell_is_none) {
  EXPECT_EQ(limit("/sys/fs/cgroup/a"), "none");
  fake_->limits[0] = {"/tmp/a", 10, 4};
  EXPECT_EQ(limit("/tmp/a"), "none") << "no cgroup's folder";
  fake_->limits[0] = {"/sys/fs/cgroup/a", 10, 4};
  fake_->init_result = 4;
  EXPECT_EQ(limit("/sys/fs/cgroup/a"), "none");
  use(FAKE_NVML_2);
  fake_->limits[0] = {"/sys/fs/cgroup/a", 10, 4};
  EXPECT_EQ(limit("/sys/fs/cgroup/a"), "none") << "this version lacks the function";
  library_ = "libno-such-nvml.so.1";
  EXPECT_EQ(limit("/sys/fs/cgroup/a"), "none");
}

TEST_F(NvmlCgroupLimitTest, errno_and_dlerror_stay_as_they_were) {
  dlerror();
  for (const char* library : {"libno-such-nvml.so.1", FAKE_NVML_1, FAKE_NVML_3}) {
    library_ = library;
    errno = 4711;
    limit("/sys/fs/cgroup/a");
    own_unified_cgroup();
    EXPECT_EQ(errno, 4711);
    EXPECT_EQ(dlerror(), nullptr) << library;
  }
}

TEST(OwnUnifiedCgroup, the_path_is_that_of_proc) {
  std::ifstream file("/proc/self/cgroup");
  std::string wanted;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("0::") && !line.starts_with("0::/.."))
      wanted = "/sys/fs/cgroup" + (line == "0::/" ? std::string() : line.substr(3));
  EXPECT_EQ(std::string(own_unified_cgroup().path), wanted);
}

}  // namespace
}  // namespace cuwarden::shim
