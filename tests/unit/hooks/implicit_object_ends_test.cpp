// Ends of streams, modules and executable graphs: what they give back, and what the driver keeps.
#include "tests/unit/hooks/implicit_objects_fixture.hpp"

namespace cuwarden::hooks {
namespace {

using ImplicitObjectEndsTest = ImplicitObjectsTest;

TEST_F(ImplicitObjectEndsTest, an_object_that_the_driver_refuses_to_destroy_goes_on) {
  const CUstream stream = make_stream(mib);
  answer = CUDA_ERROR_INVALID_HANDLE;
  destroy(stream, 0);
  EXPECT_EQ(live(Kind::stream), (Live{1, mib, 0}));
  EXPECT_EQ(bytes().streams, mib);
}

TEST_F(ImplicitObjectEndsTest,
       memory_that_the_driver_keeps_stays_in_the_sum_and_goes_to_the_next_object) {
  destroy(make_stream(2 * mib), 0);
  EXPECT_EQ(live(Kind::stream), (Live{0, 0, 1}));
  EXPECT_EQ(bytes().streams, 2 * mib);
  make_stream(0);
  EXPECT_EQ(live(Kind::stream), (Live{1, 2 * mib, 1}));
  EXPECT_EQ(bytes().streams, 2 * mib);
}

TEST_F(ImplicitObjectEndsTest,
       an_end_without_a_reading_gives_nothing_back_if_measured_ends_did_not) {
  destroy(make_stream(2 * mib), 0);
  const CUstream stream = make_stream(4 * mib);
  use_up_readings();
  destroy(stream, 0);
  EXPECT_EQ(live(Kind::stream), (Live{0, 0, 2}));
  EXPECT_EQ(bytes().streams, 6 * mib);
}

TEST_F(ImplicitObjectEndsTest, a_few_measured_ends_do_not_tell_what_many_others_give_back) {
  const CUstream first = make_stream(2 * mib);
  std::vector<CUstream> others;
  for (int i = 0; i < 20; ++i) others.push_back(make_stream(20 * mib));
  destroy(first, 2 * mib);
  use_up_readings();
  for (const CUstream stream : others) destroy(stream, 0);
  EXPECT_GT(bytes().streams, 380 * mib);
}

TEST_F(ImplicitObjectEndsTest,
       an_end_without_a_reading_gives_back_what_the_object_had_if_measured_ends_did) {
  destroy(make_stream(2000 * mib), 2000 * mib);
  const CUstream stream = make_stream(100 * mib);
  make_stream(2 * mib);
  use_up_readings();
  destroy(stream, 100 * mib);
  EXPECT_NEAR(static_cast<double>(bytes().streams), 2 * mib, 5 * mib);
}

TEST_F(ImplicitObjectEndsTest,
       memory_that_the_driver_keeps_of_an_object_that_waited_stays_in_the_sum) {
  make_stream(mib);
  use_up_readings();
  const CUstream stream = make_stream(mib);
  make_stream(mib);
  destroy(stream, 0);
  read_device();
  EXPECT_EQ(live(Kind::stream), (Live{2, 2 * mib, 1}));
  EXPECT_EQ(bytes().streams, 3 * mib);
}

TEST_F(ImplicitObjectEndsTest,
       the_next_object_with_the_handle_of_one_that_waited_has_its_own_part) {
  make_stream(mib);
  use_up_readings();
  destroy(make_stream(6 * mib), 0);
  --made;  // the driver gives the same handle again
  make_stream(2 * mib);
  read_device();
  EXPECT_EQ(live(Kind::stream), (Live{2, 5 * mib, 1}));
  EXPECT_EQ(bytes().streams, 9 * mib);
}

TEST_F(ImplicitObjectEndsTest, an_object_that_waited_and_gives_all_back_at_its_end_has_no_part) {
  make_stream(mib);
  use_up_readings();
  CUmodule module = nullptr;
  takes = 3 * mib;
  hooked(Row::cuModuleLoadData, cuModuleLoadData, &module, nullptr);
  takes = -3 * static_cast<std::int64_t>(mib);
  hooked(Row::cuModuleUnload, cuModuleUnload, module);
  make_stream(2 * mib);
  read_device();
  EXPECT_EQ(bytes().streams, 3 * mib);
  EXPECT_EQ(bytes().modules, 0u);
}

TEST_F(ImplicitObjectEndsTest, memory_that_an_end_without_a_reading_gave_back_is_counted_once) {
  destroy(make_stream(2000 * mib), 2000 * mib);
  const CUstream first = make_stream(200 * mib);
  use_up_readings();
  make_stream(200 * mib);
  destroy(first, 200 * mib);
  read_device();
  EXPECT_NEAR(static_cast<double>(live(Kind::stream).bytes), 200 * mib, 10 * mib);
  EXPECT_EQ(bytes().streams, 200 * mib);
}

TEST_F(ImplicitObjectEndsTest, an_object_that_is_destroyed_after_the_driver_has_ended_is_gone) {
  const CUstream stream = make_stream(mib);
  answer = CUDA_ERROR_DEINITIALIZED;
  destroy(stream, 0);
  EXPECT_EQ(live(Kind::stream), (Live{0, 0, 1}));
}

TEST_F(ImplicitObjectEndsTest, code_that_waits_has_its_bytes_before_its_module_ends) {
  CUmodule module = nullptr, other = nullptr;
  takes = 10 * mib;
  hooked(Row::cuModuleLoadData, cuModuleLoadData, &module, nullptr);
  takes = 40 * mib;
  hooked(Row::cuModuleLoadData, cuModuleLoadData, &other, nullptr);
  FakeKernel plain{0, "plain"};
  CUfunction found = nullptr;
  takes = 0;
  hooked(Row::cuModuleGetFunction, cuModuleGetFunction, &found, module,
         reinterpret_cast<const char*>(&plain));
  make_stream(0);  // the device has a base now
  use_up_readings();
  launch(plain, 20 * mib);
  EXPECT_EQ(bytes().modules, 50 * mib);
  takes = -30 * static_cast<std::int64_t>(mib);
  hooked(Row::cuModuleUnload, cuModuleUnload, module);
  EXPECT_EQ(bytes().modules, 40 * mib);
}

TEST_F(ImplicitObjectEndsTest, objects_that_waited_have_their_bytes_in_the_sums_of_their_group) {
  make_stream(mib);
  use_up_readings();
  for (int i = 0; i < 3; ++i) destroy(make_stream(2 * mib), 0);
  read_device();
  std::uint64_t allocated = 0;
  const ledger::Reader from = reader();
  for (std::uint64_t i = 1; i < from.rows(ledger::RegionId::groups); ++i)
    if (const auto group = from.group(i); group && group->kind == Kind::stream)
      allocated += group->allocated_bytes;
  EXPECT_EQ(live(Kind::stream), (Live{1, mib, 3}));
  EXPECT_EQ(allocated, 7 * mib);
  EXPECT_EQ(bytes().streams, 7 * mib);
}

TEST_F(ImplicitObjectEndsTest, many_objects_that_end_while_they_wait_leave_room_for_others) {
  make_stream(mib);
  use_up_readings();
  for (int i = 0; i < 2000; ++i) destroy(make_stream(1 << 10), 0);
  make_stream(0);
  read_device();
  EXPECT_EQ(live(Kind::stream), (Live{2, mib + 2000, 2000}));
  EXPECT_EQ(bytes().streams, mib + (2000 << 10));
}

}  // namespace
}  // namespace cuwarden::hooks
