// Streams, modules and executable graphs with the device memory that the driver takes for them.
#include "tests/unit/hooks/implicit_objects_fixture.hpp"

namespace cuwarden::hooks {
namespace {

TEST_F(ImplicitObjectsTest, an_object_has_the_bytes_that_its_creation_took_until_its_end) {
  const CUstream first = make_stream(mib), second = make_stream(3 * mib);
  EXPECT_EQ(live(Kind::stream), (Live{2, 4 * mib, 0}));
  destroy(first, mib);
  EXPECT_EQ(live(Kind::stream), (Live{1, 3 * mib, 1}));
  EXPECT_EQ(bytes().streams, 3 * mib);
  destroy(second, 3 * mib);
  EXPECT_EQ(live(Kind::stream), (Live{0, 0, 2}));
  EXPECT_EQ(bytes().streams, 0u);
}

TEST_F(ImplicitObjectsTest, an_object_whose_context_ends_while_it_is_made_keeps_no_bytes) {
  const_cast<driver::RealDriver&>(real).cuCtxDestroy_v2 = [](CUcontext) { return CUDA_SUCCESS; };
  make_stream(mib);
  meanwhile = [&] {
    const CallState mine = call_state;
    call_state = {};
    hooked(Row::cuCtxDestroy_v2, cuCtxDestroy_v2, fake.current);
    call_state = mine;
  };
  make_stream(mib);
  meanwhile = nullptr;
  EXPECT_EQ(live(Kind::stream).count, 0u);
  EXPECT_EQ(live(Kind::stream).bytes, 0u);
  EXPECT_EQ(bytes().streams, 0u);
}

TEST_F(ImplicitObjectsTest, objects_without_readings_share_what_the_next_reading_finds) {
  make_stream(mib);
  use_up_readings();
  const int readings = fake.readings;
  for (int i = 0; i < 10; ++i) make_stream(mib);
  EXPECT_EQ(fake.readings, readings);
  EXPECT_EQ(live(Kind::stream), (Live{11, mib, 0}));
  read_device();
  EXPECT_EQ(live(Kind::stream), (Live{11, 11 * mib, 0}));
  EXPECT_EQ(bytes().streams, 11 * mib);
  read_device();
  EXPECT_EQ(bytes().streams, 11 * mib);
}

TEST_F(ImplicitObjectsTest,
       objects_of_one_difference_have_its_number_and_those_of_the_next_another) {
  make_stream(mib);
  use_up_readings();
  for (int i = 0; i < 2; ++i) make_stream(2 * mib);
  read_device();
  for (int i = 0; i < 2; ++i) make_stream(4 * mib);
  read_device();
  EXPECT_EQ(differences(Kind::stream), (std::vector<int>{0, 1, 1, 2, 2}));
}

TEST_F(ImplicitObjectsTest, objects_of_several_threads_share_what_the_next_reading_finds) {
  std::thread([&] { make_stream(mib); }).join();
  use_up_readings();
  std::thread([&] { make_stream(3 * mib); }).join();
  make_stream(mib);
  EXPECT_EQ(live(Kind::stream), (Live{3, mib, 0}));
  read_device();
  EXPECT_EQ(live(Kind::stream), (Live{3, 5 * mib, 0}));
  EXPECT_EQ(bytes().streams, 5 * mib);
}

TEST_F(ImplicitObjectsTest, a_reading_while_another_thread_makes_an_object_is_settled_by_the_next) {
  make_stream(mib);
  use_up_readings();
  make_stream(mib);
  while_another_is_in([&] { make_stream(2 * mib); },
                      [&] {
                        read_device();
                        EXPECT_EQ(live(Kind::stream), (Live{2, mib, 0}));
                      });
  read_device();
  EXPECT_EQ(live(Kind::stream), (Live{3, 4 * mib, 0}));
  EXPECT_EQ(bytes().streams, 4 * mib);
}

TEST_F(ImplicitObjectsTest, a_reading_that_ended_before_a_call_took_memory_is_its_base) {
  make_stream(mib);
  use_up_readings();
  make_stream(2 * mib);
  meanwhile = [&] {  // another thread notes its reading late
    const std::uint64_t begun = session.objects.reading_begins(DeviceOrdinal{0});
    session.objects.device_was_read(DeviceOrdinal{0}, {fake.total_bytes, fake.free_bytes + 4 * mib},
                                    begun);
  };
  make_stream(4 * mib);
  EXPECT_EQ(bytes().streams, 3 * mib);
  read_device();
  EXPECT_EQ(live(Kind::stream), (Live{3, 7 * mib, 0}));
  EXPECT_EQ(bytes().streams, 7 * mib);
}

TEST_F(ImplicitObjectsTest, objects_that_are_made_at_the_same_time_share_what_both_took) {
  make_stream(0);
  while_another_is_in([&] { make_stream(2 * mib); }, [&] { make_stream(mib); });
  EXPECT_EQ(live(Kind::stream), (Live{3, 0, 0})) << "the readings cannot tell them apart";
  read_device();
  EXPECT_EQ(live(Kind::stream), (Live{3, 3 * mib, 0}));
  EXPECT_EQ(bytes().streams, 3 * mib);
}

TEST_F(ImplicitObjectsTest, an_allocation_under_way_at_a_reading_is_not_given_to_waiting_objects) {
  const_cast<driver::RealDriver&>(real).cuMemAlloc_v2 = [](CUdeviceptr* out, size_t) {
    return *out = 0x7000'0000, in_call();
  };
  make_stream(mib);
  use_up_readings();
  make_stream(mib);
  takes = 500 * mib;
  while_another_is_in([&] { allocate(); },
                      [&] {
                        read_device();
                        EXPECT_EQ(live(Kind::stream), (Live{2, mib, 0}));
                      });
  read_device();
  EXPECT_EQ(live(Kind::stream), (Live{2, mib, 0}));
  EXPECT_EQ(bytes().streams, mib);
}

TEST_F(ImplicitObjectsTest,
       an_allocation_that_spans_a_whole_measurement_is_not_given_to_the_object) {
  static std::binary_semaphore is_inside{0}, may_take{0}, has_taken{0}, may_end{0};
  const_cast<driver::RealDriver&>(real).cuMemAlloc_v2 = [](CUdeviceptr* out, size_t) {
    is_inside.release();
    may_take.acquire();
    fake.free_bytes -= 500 * mib;
    has_taken.release();
    may_end.acquire();
    return *out = 0x7000'0000, CUDA_SUCCESS;
  };
  std::thread other([&] { allocate(); });
  is_inside.acquire();
  meanwhile = [] {
    may_take.release();
    has_taken.acquire();
  };
  make_stream(mib);
  may_end.release();
  other.join();
  read_device();
  EXPECT_EQ(live(Kind::stream), (Live{1, 0, 0}));
  EXPECT_EQ(bytes().streams, 0u);
}

TEST_F(ImplicitObjectsTest, an_allocation_in_between_leaves_the_bytes_of_waiting_objects_unknown) {
  make_stream(mib);
  use_up_readings();
  make_stream(mib);
  fake.free_bytes -= 500 * mib;
  allocate();
  read_device();
  EXPECT_EQ(live(Kind::stream), (Live{2, mib, 0}));
  EXPECT_EQ(bytes().streams, mib);
}

TEST_F(ImplicitObjectsTest, a_change_during_a_reading_leaves_no_base) {
  make_stream(mib);
  allocate();
  use_up_readings();
  const std::uint64_t begun = session.objects.reading_begins(DeviceOrdinal{0});
  const driver::DeviceReading before{fake.total_bytes, fake.free_bytes};
  fake.free_bytes -= 500 * mib;
  allocate();
  session.objects.device_was_read(DeviceOrdinal{0}, before, begun);
  make_stream(mib);
  read_device();
  EXPECT_EQ(live(Kind::stream), (Live{2, mib, 0}));
}

TEST_F(ImplicitObjectsTest, a_difference_that_no_objects_can_have_taken_is_not_given_to_them) {
  make_stream(mib);
  use_up_readings();
  make_stream(mib);
  fake.free_bytes -= 2500 * mib;
  read_device();
  EXPECT_EQ(live(Kind::stream), (Live{2, mib, 0}));
}

TEST_F(ImplicitObjectsTest, code_that_was_loaded_later_ends_with_its_module) {
  takes = mib;
  CUmodule module = nullptr;
  hooked(Row::cuModuleLoadData, cuModuleLoadData, &module, nullptr);
  FakeKernel plain{0, "plain"};
  CUfunction found = nullptr;
  takes = 0;
  hooked(Row::cuModuleGetFunction, cuModuleGetFunction, &found, module,
         reinterpret_cast<const char*>(&plain));
  launch(plain, 2 * mib);
  EXPECT_EQ(live(Kind::module), (Live{2, 3 * mib, 0}));
  takes = -std::int64_t{3 * mib};
  hooked(Row::cuModuleUnload, cuModuleUnload, module);
  EXPECT_EQ(live(Kind::module), (Live{0, 0, 2}));
  EXPECT_EQ(bytes().modules, 0u);
}

TEST_F(ImplicitObjectsTest, an_executable_graph_has_what_its_instantiation_took) {
  takes = 2 * mib;
  CUgraphExec exec = nullptr;
  hooked(Row::cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, &exec, CUgraph{}, 0ull);
  EXPECT_EQ(live(Kind::graph_exec), (Live{1, 2 * mib, 0}));
  EXPECT_EQ(bytes().graphs, 2 * mib);
}

TEST_F(ImplicitObjectsTest, gigabytes_that_vanish_during_an_instantiation_are_not_the_graphs) {
  takes = 2500 * mib;
  CUgraphExec exec = nullptr;
  hooked(Row::cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, &exec, CUgraph{}, 0ull);
  EXPECT_EQ(live(Kind::graph_exec), (Live{1, 0, 0}));
  EXPECT_EQ(bytes().graphs, 0u);
}

TEST_F(ImplicitObjectsTest, readings_stop_at_a_thousandth_of_the_run_time) {
  const std::uint64_t at_start = 4'000'000;
  EXPECT_TRUE(session.implicit.may_read(0));
  session.implicit.reading_took(at_start);
  EXPECT_FALSE(session.implicit.may_read(0));
  EXPECT_FALSE(session.implicit.may_read(999));
  EXPECT_TRUE(session.implicit.may_read(1'000));
  session.implicit.reading_took(1'000'000);
  EXPECT_FALSE(session.implicit.may_read(1'000'000'000));
  EXPECT_TRUE(session.implicit.may_read(1'001'000'000));
}

}  // namespace
}  // namespace cuwarden::hooks
