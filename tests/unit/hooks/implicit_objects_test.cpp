// Streams, modules and executable graphs with the device memory that the driver takes for them.
#include <functional>
#include <semaphore>
#include <thread>

#include "tests/unit/hooks/implicit_memory_fixture.hpp"

namespace cuwarden::hooks {
namespace {

class ImplicitObjectsTest : public ImplicitMemoryTest {
 protected:
  ImplicitObjectsTest() {
    auto& functions = const_cast<driver::RealDriver&>(real);
    functions.cuStreamCreate = [](CUstream* out, unsigned) {
      *out = reinterpret_cast<CUstream>(0x1000 + 16 * ++made);
      return in_call();
    };
    functions.cuStreamDestroy_v2 = [](CUstream) { return in_call(); };
    functions.cuModuleLoadData = [](CUmodule* out, const void*) {
      *out = reinterpret_cast<CUmodule>(0x900'000 + 16 * ++made);
      return in_call();
    };
    functions.cuModuleGetFunction = [](CUfunction* out, CUmodule, const char* name) {
      *out = reinterpret_cast<CUfunction>(const_cast<char*>(name));
      return in_call();
    };
    made = 0;
  }
  CUstream make_stream(std::int64_t bytes) {
    takes = bytes;
    CUstream stream = nullptr;
    hooked(Row::cuStreamCreate, cuStreamCreate, &stream, 0u);
    return stream;
  }
  void destroy(CUstream stream, std::int64_t gives_back) {
    takes = -gives_back;
    hooked(Row::cuStreamDestroy_v2, cuStreamDestroy_v2, stream);
  }
  // A reading that would have come anyway, as at the end of the process.
  void read_device() {
    const std::uint64_t begun = session.objects.reading_begins(DeviceOrdinal{0});
    session.objects.device_was_read(DeviceOrdinal{0}, {fake.total_bytes, fake.free_bytes}, begun);
  }
  // Does `work` while another thread is inside `call`, whose memory is taken already.
  static void while_another_is_in(const std::function<void()>& call,
                                  const std::function<void()>& work) {
    std::binary_semaphore is_inside{0}, may_end{0};
    meanwhile = [&] {
      is_inside.release();
      may_end.acquire();
    };
    std::thread other(call);
    is_inside.acquire();
    work();
    may_end.release();
    other.join();
  }
  static inline std::uint64_t made = 0;
};

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

TEST_F(ImplicitObjectsTest, an_object_that_the_driver_refuses_to_destroy_goes_on) {
  const CUstream stream = make_stream(mib);
  answer = CUDA_ERROR_INVALID_HANDLE;
  destroy(stream, 0);
  EXPECT_EQ(live(Kind::stream), (Live{1, mib, 0}));
  EXPECT_EQ(bytes().streams, mib);
}

TEST_F(ImplicitObjectsTest,
       memory_that_the_driver_keeps_stays_in_the_sum_and_goes_to_the_next_object) {
  destroy(make_stream(2 * mib), 0);
  EXPECT_EQ(live(Kind::stream), (Live{0, 0, 1}));
  EXPECT_EQ(bytes().streams, 2 * mib);
  make_stream(0);
  EXPECT_EQ(live(Kind::stream), (Live{1, 2 * mib, 1}));
  EXPECT_EQ(bytes().streams, 2 * mib);
}

TEST_F(ImplicitObjectsTest, an_end_without_a_reading_gives_nothing_back_if_measured_ends_did_not) {
  destroy(make_stream(2 * mib), 0);
  const CUstream stream = make_stream(4 * mib);
  use_up_readings();
  destroy(stream, 0);
  EXPECT_EQ(live(Kind::stream), (Live{0, 0, 2}));
  EXPECT_EQ(bytes().streams, 6 * mib);
}

TEST_F(ImplicitObjectsTest, a_few_measured_ends_do_not_tell_what_many_others_give_back) {
  const CUstream first = make_stream(2 * mib);
  std::vector<CUstream> others;
  for (int i = 0; i < 20; ++i) others.push_back(make_stream(20 * mib));
  destroy(first, 2 * mib);
  use_up_readings();
  for (const CUstream stream : others) destroy(stream, 0);
  EXPECT_GT(bytes().streams, 380 * mib);
}

TEST_F(ImplicitObjectsTest, ends_without_readings_are_corrected_by_the_next_reading) {
  const CUstream first = make_stream(20 * mib), second = make_stream(30 * mib);
  use_up_readings();
  destroy(first, 20 * mib);
  EXPECT_EQ(bytes().streams, 50 * mib);
  read_device();
  EXPECT_EQ(bytes().streams, 30 * mib);
  destroy(second, 0);
  read_device();
  EXPECT_EQ(bytes().streams, 30 * mib);
}

TEST_F(ImplicitObjectsTest, no_reading_makes_ends_give_back_more_than_the_objects_had) {
  const CUstream stream = make_stream(20 * mib);
  make_stream(5 * mib);
  use_up_readings();
  destroy(stream, 900 * mib);
  read_device();
  EXPECT_EQ(bytes().streams, 5 * mib);
}

TEST_F(ImplicitObjectsTest,
       an_allocation_between_an_end_and_the_reading_leaves_the_end_as_it_counts) {
  const CUstream stream = make_stream(20 * mib);
  use_up_readings();
  destroy(stream, 20 * mib);
  allocate();
  read_device();
  EXPECT_EQ(bytes().streams, 20 * mib);
  read_device();
  EXPECT_EQ(bytes().streams, 20 * mib);
}

TEST_F(ImplicitObjectsTest, many_objects_may_take_more_together_than_one_can) {
  make_stream(0);
  use_up_readings();
  for (int i = 0; i < 4; ++i) make_stream(700 * mib);
  read_device();
  EXPECT_EQ(bytes().streams, 2800 * mib);
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

TEST_F(ImplicitObjectsTest,
       an_end_without_a_reading_gives_back_what_the_object_had_if_measured_ends_did) {
  destroy(make_stream(2000 * mib), 2000 * mib);
  const CUstream stream = make_stream(100 * mib);
  make_stream(2 * mib);
  use_up_readings();
  destroy(stream, 100 * mib);
  EXPECT_NEAR(static_cast<double>(bytes().streams), 2 * mib, 5 * mib);
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

TEST_F(ImplicitObjectsTest,
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

TEST_F(ImplicitObjectsTest, the_next_object_with_the_handle_of_one_that_waited_has_its_own_part) {
  make_stream(mib);
  use_up_readings();
  destroy(make_stream(6 * mib), 0);
  --made;  // the driver gives the same handle again
  make_stream(2 * mib);
  read_device();
  EXPECT_EQ(live(Kind::stream), (Live{2, 5 * mib, 1}));
  EXPECT_EQ(bytes().streams, 9 * mib);
}

TEST_F(ImplicitObjectsTest, an_object_that_waited_and_gives_all_back_at_its_end_has_no_part) {
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

TEST_F(ImplicitObjectsTest, memory_that_an_end_without_a_reading_gave_back_is_counted_once) {
  destroy(make_stream(2000 * mib), 2000 * mib);
  const CUstream first = make_stream(200 * mib);
  use_up_readings();
  make_stream(200 * mib);
  destroy(first, 200 * mib);
  read_device();
  EXPECT_NEAR(static_cast<double>(live(Kind::stream).bytes), 200 * mib, 10 * mib);
  EXPECT_EQ(bytes().streams, 200 * mib);
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

TEST_F(ImplicitObjectsTest, an_object_that_is_destroyed_after_the_driver_has_ended_is_gone) {
  const CUstream stream = make_stream(mib);
  answer = CUDA_ERROR_DEINITIALIZED;
  destroy(stream, 0);
  EXPECT_EQ(live(Kind::stream), (Live{0, 0, 1}));
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
