// A device's memory, read from a fake NVML that answers as a test says.
#include "shim/probes/nvml_memory.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/shim/fake_nvml.hpp"

namespace cuwarden::shim {
namespace {

class NvmlMemoryTest : public testing::Test {
 protected:
  void use(const char* library) {
    library_ = library;
    fake_ = load_fake_nvml(library, mig_text);
    ASSERT_NE(fake_, nullptr) << dlerror();
    fake_->whole_result = 0;
    fake_->whole_bytes = 80ull << 30;
  }
  std::optional<std::uint64_t> whole() {
    const auto memory =
        read_nvml_memory_of_whole(std::span<const char, 16>(device_uuid, 16), library_);
    return memory ? std::optional(memory->total_bytes) : std::nullopt;
  }
  std::optional<std::uint64_t> free() {
    const auto memory = read_nvml_memory(std::span<const char, 16>(device_uuid, 16), library_);
    return memory ? std::optional(memory->free_bytes) : std::nullopt;
  }

  const char* library_ = nullptr;
  FakeNvml* fake_ = nullptr;
};

TEST_F(NvmlMemoryTest, the_memory_of_a_whole_device_is_not_that_of_its_slice) {
  use(FAKE_NVML_3);
  EXPECT_EQ(whole(), 80ull << 30);
  EXPECT_EQ(fake_->inits, 1);
  EXPECT_EQ(fake_->shutdowns, 1);
}

TEST_F(NvmlMemoryTest, the_free_memory_is_that_of_the_device_or_slice_itself) {
  use(FAKE_NVML_3);
  fake_->own_bytes = 4711;
  EXPECT_EQ(free(), 4711 / 2);
  fake_->known_uuid = gpu_text;
  EXPECT_EQ(free(), 4711 / 2);
  fake_->memory_result = 15;
  EXPECT_EQ(free(), std::nullopt);
  use(FAKE_NVML_0);
  EXPECT_EQ(free(), std::nullopt);
}

TEST_F(NvmlMemoryTest, a_device_that_is_no_slice_has_no_whole_device_above_it) {
  use(FAKE_NVML_3);
  fake_->whole_result = 2;
  EXPECT_EQ(whole(), std::nullopt);
  EXPECT_EQ(fake_->shutdowns, 1);
}

TEST_F(NvmlMemoryTest, memory_that_NVML_refuses_to_tell_is_unknown) {
  use(FAKE_NVML_3);
  fake_->memory_result = 4;
  EXPECT_EQ(whole(), std::nullopt);
  use(FAKE_NVML_3);
  fake_->init_result = 4;
  EXPECT_EQ(whole(), std::nullopt);
  EXPECT_EQ(fake_->shutdowns, 0);
  use(FAKE_NVML_3);
  fake_->known_uuid = "MIG-00000000-0000-0000-0000-000000000000";
  EXPECT_EQ(whole(), std::nullopt);
  use(FAKE_NVML_1);  // this version is older than MIG
  EXPECT_EQ(whole(), std::nullopt);
  EXPECT_EQ(fake_->shutdowns, 1);
  library_ = "libno-such-nvml.so.1";
  EXPECT_EQ(whole(), std::nullopt);
}

TEST_F(NvmlMemoryTest, errno_and_dlerror_stay_as_they_were) {
  dlerror();
  for (const char* library : {"libno-such-nvml.so.1", FAKE_NVML_1, FAKE_NVML_3}) {
    library_ = library;
    errno = 4711;
    whole();
    EXPECT_EQ(errno, 4711);
    EXPECT_EQ(dlerror(), nullptr) << library;
  }
}

}  // namespace
}  // namespace cuwarden::shim
