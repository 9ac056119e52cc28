// Memory of streams, modules and contexts beside another process that takes and releases memory of
// the same device.
#include "runtime_hooks/tracking/devices/neighbours.hpp"

#include <algorithm>
#include <vector>

#include "tests/unit/hooks/implicit_memory_fixture.hpp"
#include "tests/unit/manual_clock.hpp"

namespace cuwarden::hooks {
namespace {

constexpr std::uint64_t ms = 1'000'000, second = 1000 * ms;

// NVML's list of a device on which a test's neighbour has memory.
struct FakeList final : tracking::HolderList {
  std::optional<tracking::DeviceHolders> ask(std::span<const char, 16>) noexcept override {
    ++asked;
    clock.advance(cost_ns);
    if (!answers) return std::nullopt;
    tracking::DeviceHolders holders;
    holders.has_others = lists_others && theirs != 0;
    if (lists_own) holders.own_bytes = fake.total_bytes - fake.free_bytes - theirs;
    return holders;
  }
  // The neighbour takes memory of the device; negative: it releases some.
  void take(std::int64_t bytes) {
    theirs += static_cast<std::uint64_t>(bytes);
    fake.free_bytes -= static_cast<std::size_t>(bytes);
  }

  ManualClock clock;
  std::uint64_t theirs = 0;
  std::uint64_t cost_ns = 0;
  int asked = 0;
  bool answers = true, lists_others = true, lists_own = true;
};

class NeighboursTest : public ImplicitMemoryTest {
 protected:
  NeighboursTest() {
    auto& functions = const_cast<driver::RealDriver&>(real);
    functions.cuDeviceGet = [](CUdevice* out, int ordinal) {
      errno = EIO;
      return *out = ordinal, CUDA_SUCCESS;
    };
    functions.cuDeviceGetUuid_v2 = [](CUuuid* out, CUdevice) { return *out = {}, CUDA_SUCCESS; };
    functions.cuMemGetInfo_v2 = [](size_t* free, size_t* total) {
      ++fake.readings;
      *free = fake.free_bytes;
      *total = fake.total_bytes;
      if (after_reading) after_reading();
      return CUDA_SUCCESS;
    };
    functions.cuStreamCreate = [](CUstream* out, unsigned) {
      *out = reinterpret_cast<CUstream>(0x1000 + 16 * ++made);
      return in_call();
    };
    functions.cuStreamDestroy_v2 = [](CUstream) { return in_call(); };
    made = 0;
    after_reading = nullptr;
  }
  ~NeighboursTest() override { after_reading = nullptr; }

  CUstream make_stream(std::int64_t bytes) {
    takes = bytes;
    CUstream stream = nullptr;
    hooked_on(real, beside, Row::cuStreamCreate, cuStreamCreate, &stream, 0u);
    return stream;
  }
  void destroy(CUstream stream, std::int64_t gives_back) {
    takes = -gives_back;
    hooked_on(real, beside, Row::cuStreamDestroy_v2, cuStreamDestroy_v2, stream);
  }
  CUresult load_module(std::int64_t bytes) {
    takes = bytes;
    CUmodule module = nullptr;
    return hooked_on(real, beside, Row::cuModuleLoadData, cuModuleLoadData, &module, nullptr);
  }
  // Runs `work` inside the driver's next call, as another thread of this process.
  template <class Work>
  static void other_thread(Work work) {
    meanwhile = [work] {
      const CallState mine = call_state;
      call_state = {};
      work();
      call_state = mine;
    };
  }
  void neighbour_in_next_call(std::int64_t bytes) {
    meanwhile = [this, bytes] { list.take(bytes); };
  }
  // A neighbour with 2 GiB, which shows when the first context is made.
  void neighbour_from_the_beginning() {
    list.take(2048 * mib);
    CUcontext context = nullptr;
    fake.current = nullptr;
    fake.primary_active = false;
    hooked_on(real, beside, Row::cuCtxCreate_v2, cuCtxCreate_v2, &context, 0u, 0);
  }
  void next_call_takes_seconds_while_the_neighbour_moves() {
    meanwhile = [this] {
      list.clock.advance(3 * second);
      list.take(700 * mib);
      list.take(-300 * std::int64_t{mib});
    };
  }
  void use_up_readings() { beside.implicit.reading_took(std::uint64_t{1} << 60); }
  void read_device() {
    const std::uint64_t begun = beside.objects.reading_begins(DeviceOrdinal{0});
    beside.objects.device_was_read(DeviceOrdinal{0}, {fake.total_bytes, fake.free_bytes}, begun);
  }

  // The sums of all live objects of a kind, and the number of those with each mark.
  struct Live {
    std::uint64_t count = 0, bytes = 0, uncertain = 0, shared = 0;
    bool operator==(const Live&) const = default;
  };
  Live live(Kind kind) const {
    Live sum;
    const ledger::Reader from = reader();
    for (std::uint64_t i = 1; i < from.rows(ledger::RegionId::records); ++i) {
      const auto record = from.record(i);
      if (!record || from.group(record->group.value)->kind != kind) continue;
      ++sum.count;
      sum.bytes += record->bytes.value;
      sum.uncertain += (record->flags & ledger::record_bytes_uncertain) != 0 ? 1 : 0;
      sum.shared += (record->flags & ledger::record_bytes_shared) != 0 ? 1 : 0;
    }
    return sum;
  }
  // The numbers of the differences of which live objects of a kind have parts, in ascending order.
  std::vector<int> differences(Kind kind) const {
    std::vector<int> numbers;
    const ledger::Reader from = reader();
    for (std::uint64_t i = 1; i < from.rows(ledger::RegionId::records); ++i)
      if (const auto record = from.record(i);
          record && from.group(record->group.value)->kind == kind)
        numbers.push_back(record->difference);
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  }
  friend std::ostream& operator<<(std::ostream& out, const Live& sum) {
    return out << sum.count << " objects, " << sum.bytes << " bytes, " << sum.uncertain
               << " uncertain, " << sum.shared << " shared";
  }

  FakeList list;
  Surroundings with_list() {
    Surroundings around = shim.around(list.clock);
    around.holders = &list;
    return around;
  }
  Session beside{*writer, real, with_list(), {}};
  static inline std::uint64_t made = 0;
  static inline std::function<void()> after_reading;
};

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

TEST_F(NeighboursTest, objects_of_one_difference_have_its_number_and_those_of_the_next_another) {
  make_stream(mib);
  use_up_readings();
  for (int i = 0; i < 2; ++i) make_stream(2 * mib);
  read_device();
  for (int i = 0; i < 2; ++i) make_stream(4 * mib);
  read_device();
  EXPECT_EQ(differences(Kind::stream), (std::vector<int>{0, 1, 1, 2, 2}));
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
