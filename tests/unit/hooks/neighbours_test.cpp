// Memory of streams, modules and contexts beside another process that takes and releases memory of
// the same device.
#include "tests/unit/hooks/neighbours_fixture.hpp"

namespace cuwarden::hooks {
namespace {

TEST_F(NeighboursTest, without_a_sign_of_a_neighbour_nothing_more_is_read_or_asked) {
  make_stream(mib);
  make_stream(3 * mib);
  EXPECT_EQ(fake.readings, 4);
  EXPECT_EQ(list.asked, 0);
  EXPECT_EQ(live(Kind::stream), (Live{2, 4 * mib, 0, 0}));
}

TEST_F(NeighboursTest, beside_a_neighbour_the_processs_own_figure_counts) {
  neighbour_from_the_beginning();
  neighbour_in_next_call(500 * mib);
  make_stream(mib);
  neighbour_in_next_call(-400 * std::int64_t{mib});
  make_stream(2 * mib);
  EXPECT_EQ(live(Kind::stream), (Live{2, 3 * mib, 0, 0}));
  EXPECT_EQ(bytes().streams, 3 * mib);
}

TEST_F(NeighboursTest, without_an_own_figure_a_second_reading_confirms_the_first_one) {
  list.answers = false;
  neighbour_from_the_beginning();
  const int before = fake.readings;
  make_stream(mib);
  EXPECT_EQ(live(Kind::stream), (Live{1, mib, 0, 0}));
  EXPECT_EQ(fake.readings, before + 4);
}

TEST_F(NeighboursTest, a_neighbour_that_moves_between_the_readings_leaves_an_object_without_bytes) {
  list.answers = false;
  neighbour_from_the_beginning();
  meanwhile = [this] {
    list.take(500 * mib);
    after_reading = [this] { list.take(4 * mib); };
  };
  make_stream(mib);
  after_reading = nullptr;
  EXPECT_EQ(live(Kind::stream), (Live{1, 0, 1, 0}));
  EXPECT_EQ(bytes().streams, 0u);
  // For a while the neighbour may move at any time.
  make_stream(mib);
  EXPECT_EQ(live(Kind::stream), (Live{2, 0, 2, 0}));
  list.clock.advance(2 * second);
  make_stream(mib);
  make_stream(mib);
  EXPECT_EQ(live(Kind::stream), (Live{4, 2 * mib, 2, 0}));
}

TEST_F(NeighboursTest, a_neighbour_that_has_moved_since_the_first_context_leaves_doubt) {
  list.answers = false;
  neighbour_from_the_beginning();
  list.take(30 * mib);
  make_stream(mib);
  EXPECT_EQ(live(Kind::stream), (Live{1, 0, 1, 0}));
}

TEST_F(NeighboursTest, a_call_that_takes_seconds_is_not_confirmed_by_a_second_reading) {
  list.answers = false;
  neighbour_from_the_beginning();
  next_call_takes_seconds_while_the_neighbour_moves();
  load_module(5 * mib);
  EXPECT_EQ(live(Kind::module), (Live{1, 0, 1, 0}));
  EXPECT_EQ(bytes().modules, 0u);
}

TEST_F(NeighboursTest, a_call_that_takes_seconds_has_the_bytes_of_the_own_figure) {
  neighbour_from_the_beginning();
  next_call_takes_seconds_while_the_neighbour_moves();
  load_module(5 * mib);
  EXPECT_EQ(live(Kind::module), (Live{1, 5 * mib, 0, 0}));
}

TEST_F(NeighboursTest, memory_that_a_neighbour_releases_makes_no_row_negative) {
  list.answers = false;
  neighbour_from_the_beginning();
  make_stream(3 * mib);
  meanwhile = [this] {
    list.take(-900 * std::int64_t{mib});
    after_reading = [this] { list.take(-std::int64_t{mib}); };
  };
  const CUstream released_beside = make_stream(mib);
  after_reading = nullptr;
  EXPECT_EQ(bytes().streams, 3 * mib);
  EXPECT_EQ(live(Kind::stream), (Live{2, 3 * mib, 1, 0}));
  neighbour_in_next_call(-300 * std::int64_t{mib});
  destroy(released_beside, mib);
  EXPECT_EQ(live(Kind::stream), (Live{1, 3 * mib, 0, 0}));
  EXPECT_EQ(bytes().streams, 3 * mib);
}

TEST_F(NeighboursTest, the_end_of_an_object_with_uncertain_bytes_leaves_those_of_the_others) {
  list.answers = false;
  neighbour_from_the_beginning();
  make_stream(3 * mib);
  meanwhile = [this] { list.clock.advance(2 * second); };
  const CUstream uncertain = make_stream(2 * mib);
  EXPECT_EQ(live(Kind::stream), (Live{2, 3 * mib, 1, 0}));
  destroy(uncertain, 2 * mib);
  EXPECT_EQ(bytes().streams, 3 * mib);
}

TEST_F(NeighboursTest, a_change_without_a_call_makes_the_list_be_asked) {
  make_stream(mib);
  list.take(300 * mib);
  neighbour_in_next_call(40 * mib);
  make_stream(mib);
  EXPECT_EQ(live(Kind::stream), (Live{2, 2 * mib, 0, 0}));
  EXPECT_GT(list.asked, 0);
}

TEST_F(NeighboursTest, a_list_of_this_process_alone_ends_the_suspicion) {
  make_stream(mib);
  fake.free_bytes -= 8 * mib;  // a table that the driver makes for itself
  make_stream(mib);
  const int readings = fake.readings, asked = list.asked;
  make_stream(mib);
  EXPECT_EQ(live(Kind::stream), (Live{3, 3 * mib, 0, 0}));
  EXPECT_EQ(fake.readings, readings + 2);
  EXPECT_EQ(list.asked, asked);
}

TEST_F(NeighboursTest, a_neighbour_that_the_list_leaves_out_shows_in_the_memory_in_use) {
  list.lists_others = false;
  neighbour_from_the_beginning();
  neighbour_in_next_call(500 * mib);
  make_stream(mib);
  EXPECT_EQ(live(Kind::stream), (Live{1, mib, 0, 0}));
}

TEST_F(NeighboursTest, a_neighbour_that_begins_during_a_call_does_not_make_its_object_larger) {
  neighbour_in_next_call(530 * mib);
  make_stream(mib);
  EXPECT_EQ(live(Kind::stream), (Live{1, 0, 1, 0}));
  EXPECT_EQ(bytes().streams, 0u);
}

TEST_F(NeighboursTest, code_of_many_bytes_is_the_processs_own_where_the_list_has_no_other) {
  load_module(400 * mib);
  EXPECT_EQ(live(Kind::module), (Live{1, 400 * mib, 0, 0}));
  EXPECT_EQ(list.asked, 1);
}

TEST_F(NeighboursTest, many_objects_have_what_no_other_process_can_have_taken) {
  make_stream(0);
  use_up_readings();
  for (int i = 0; i < 4; ++i) make_stream(700 * mib);
  read_device();
  EXPECT_EQ(live(Kind::stream), (Live{5, 2800 * mib, 0, 4}));
}

TEST_F(NeighboursTest, many_objects_have_no_bytes_that_a_new_neighbour_can_have_taken) {
  make_stream(0);
  use_up_readings();
  for (int i = 0; i < 4; ++i) make_stream(mib);
  list.take(2500 * mib);
  read_device();
  EXPECT_EQ(live(Kind::stream), (Live{5, 0, 4, 0}));
}

TEST_F(NeighboursTest, a_slow_list_is_not_asked_in_each_call) {
  list.cost_ns = 30 * ms;
  neighbour_from_the_beginning();
  for (int i = 0; i < 100; ++i) make_stream(mib);
  EXPECT_LE(list.asked, 2);
  list.clock.advance(100 * second);
  for (int i = 0; i < 100; ++i) make_stream(mib);
  EXPECT_LE(list.asked, 6);
  EXPECT_GE(list.asked, 4);
}

TEST_F(NeighboursTest, a_first_context_has_what_the_list_says_that_this_process_holds) {
  const std::uint64_t own = fake.total_bytes - fake.free_bytes;
  neighbour_from_the_beginning();
  EXPECT_EQ(bytes().used_after_first_context, own);
}

TEST_F(NeighboursTest, objects_that_share_a_difference_are_marked) {
  make_stream(mib);
  use_up_readings();
  for (int i = 0; i < 4; ++i) make_stream(2 * mib);
  EXPECT_EQ(live(Kind::stream), (Live{5, mib, 4, 0}));
  read_device();
  EXPECT_EQ(live(Kind::stream), (Live{5, 9 * mib, 0, 4}));
}

TEST_F(NeighboursTest, one_object_that_waits_for_a_reading_has_all_of_the_difference) {
  make_stream(mib);
  use_up_readings();
  make_stream(2 * mib);
  read_device();
  EXPECT_EQ(live(Kind::stream), (Live{2, 3 * mib, 0, 0}));
}

TEST_F(NeighboursTest, objects_beside_a_neighbour_share_what_the_own_figure_tells_later) {
  neighbour_from_the_beginning();
  make_stream(mib);
  use_up_readings();
  for (int i = 0; i < 4; ++i) make_stream(2 * mib);
  list.take(300 * mib);
  read_device();
  EXPECT_EQ(live(Kind::stream), (Live{5, 9 * mib, 0, 4}));
  EXPECT_EQ(bytes().streams, 9 * mib);
}

TEST_F(NeighboursTest, objects_beside_a_neighbour_share_nothing_without_an_own_figure) {
  list.lists_own = false;
  neighbour_from_the_beginning();
  make_stream(mib);
  use_up_readings();
  for (int i = 0; i < 4; ++i) make_stream(2 * mib);
  list.take(300 * mib);
  read_device();
  EXPECT_EQ(live(Kind::stream), (Live{5, mib, 4, 0}));
  EXPECT_EQ(bytes().streams, mib);
}

TEST_F(NeighboursTest, objects_that_wait_when_a_neighbour_becomes_known_share_nothing) {
  make_stream(mib);
  use_up_readings();
  for (int i = 0; i < 4; ++i) make_stream(2 * mib);
  list.take(300 * mib);
  beside.neighbours.ask(DeviceOrdinal{0});
  read_device();
  EXPECT_EQ(live(Kind::stream), (Live{5, mib, 4, 0}));
  EXPECT_EQ(bytes().streams, mib);
}

TEST_F(NeighboursTest, a_reset_of_the_device_during_a_call_leaves_no_bytes) {
  neighbour_from_the_beginning();
  make_stream(3 * mib);
  other_thread([this] {
    fake.free_bytes += 100 * mib;
    hooked_on(real, beside, Row::cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset_v2, 0);
  });
  make_stream(mib);
  const Live now = live(Kind::stream);
  EXPECT_LE(now.bytes, 3 * mib);
  EXPECT_EQ(now.uncertain, 1u);
  EXPECT_LE(bytes().streams, 3 * mib);
}

TEST_F(NeighboursTest, a_context_that_another_thread_destroys_during_a_call_leaves_no_bytes) {
  neighbour_from_the_beginning();
  other_thread([this] {
    list.take(500 * mib);
    hooked_on(real, beside, Row::cuCtxDestroy_v2, cuCtxDestroy_v2,
              reinterpret_cast<CUcontext>(0x3000));
  });
  make_stream(mib);
  EXPECT_EQ(live(Kind::stream).bytes, 0u);
  EXPECT_EQ(bytes().streams, 0u);
}

TEST_F(NeighboursTest, the_list_is_not_asked_once_the_process_ends) {
  neighbour_from_the_beginning();
  const int asked = list.asked;
  beside.process_is_ending();
  make_stream(mib);
  EXPECT_EQ(list.asked, asked);
}

TEST_F(NeighboursTest, errno_is_kept) {
  neighbour_from_the_beginning();
  errno = ENOENT;
  make_stream(mib);
  EXPECT_EQ(errno, ENOENT);
}

}  // namespace
}  // namespace cuwarden::hooks
