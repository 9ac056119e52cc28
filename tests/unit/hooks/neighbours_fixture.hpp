// A session beside another process that takes and releases memory of the same device.
#pragma once

#include <functional>

#include "runtime_hooks/tracking/devices/neighbours.hpp"
#include "tests/unit/hooks/implicit_memory_fixture.hpp"
#include "tests/unit/manual_clock.hpp"

namespace cuwarden::hooks {

// Nanoseconds of a millisecond and of a second.
inline constexpr std::uint64_t ms = 1'000'000, second = 1000 * ms;

// Stands in for NVML's list of the processes that hold memory of the device: this process, and a
// neighbour whose memory a test sets.
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
  // Lets the neighbour take `bytes` of the device; negative: it frees them.
  void take(std::int64_t bytes) {
    theirs += static_cast<std::uint64_t>(bytes);
    fake.free_bytes -= static_cast<std::size_t>(bytes);
  }

  ManualClock clock;          // the clock of the session
  std::uint64_t theirs = 0;   // bytes of the device that the neighbour holds
  std::uint64_t cost_ns = 0;  // time that each question to the list takes, in nanoseconds
  int asked = 0;              // number of questions to the list
  // False if NVML cannot be asked; false if its list lacks other processes, as in a container;
  // false if its list lacks this process.
  bool answers = true, lists_others = true, lists_own = true;
};

// A session that can ask for the holders of the device's memory, beside a neighbour process.
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

  // Makes a stream, for which the driver takes `bytes` of the device. Returns its handle.
  CUstream make_stream(std::int64_t bytes) {
    takes = bytes;
    CUstream stream = nullptr;
    hooked_on(real, beside, Row::cuStreamCreate, cuStreamCreate, &stream, 0u);
    return stream;
  }
  // Destroys a stream, for which the driver frees `gives_back` bytes of the device.
  void destroy(CUstream stream, std::int64_t gives_back) {
    takes = -gives_back;
    hooked_on(real, beside, Row::cuStreamDestroy_v2, cuStreamDestroy_v2, stream);
  }
  // Loads a module, for which the driver takes `bytes` of the device. Returns the hook's result.
  CUresult load_module(std::int64_t bytes) {
    takes = bytes;
    CUmodule module = nullptr;
    return hooked_on(real, beside, Row::cuModuleLoadData, cuModuleLoadData, &module, nullptr);
  }
  // Calls work() during the driver's next call, in place of another thread of this process.
  template <class Work>
  static void other_thread(Work work) {
    meanwhile = [work] {
      const CallState mine = call_state;
      call_state = {};
      work();
      call_state = mine;
    };
  }
  // Lets the neighbour take `bytes` during the driver's next call; negative: it frees them.
  void neighbour_in_next_call(std::int64_t bytes) {
    meanwhile = [this, bytes] { list.take(bytes); };
  }
  // Lets the neighbour take 2 GiB before this process makes its first context.
  void neighbour_from_the_beginning() {
    list.take(2048 * mib);
    CUcontext context = nullptr;
    fake.current = nullptr;
    fake.primary_active = false;
    hooked_on(real, beside, Row::cuCtxCreate_v2, cuCtxCreate_v2, &context, 0u, 0);
  }
  // Lets the driver's next call take 3 seconds, in which the neighbour takes 700 MiB and frees 300.
  void next_call_takes_seconds_while_the_neighbour_moves() {
    meanwhile = [this] {
      list.clock.advance(3 * second);
      list.take(700 * mib);
      list.take(-300 * std::int64_t{mib});
    };
  }
  // Uses up the time that the session may spend in this process on reading devices.
  void use_up_readings() {
    beside.implicit.reading_took(std::uint64_t{1} << 60);
    beside.implicit.reading_took(0);  // the last reading was fast
  }
  // Tells the session the device's free bytes, as at the end of the process.
  void read_device() {
    const std::uint64_t begun = beside.objects.reading_begins(DeviceOrdinal{0});
    beside.objects.device_was_read(DeviceOrdinal{0}, {fake.total_bytes, fake.free_bytes}, begun);
  }

  // Sums of all live objects of a kind in the ledger. count and bytes: their number and bytes.
  // uncertain and shared: numbers of those with the flags record_bytes_uncertain and
  // record_bytes_shared.
  struct Live {
    std::uint64_t count = 0, bytes = 0, uncertain = 0, shared = 0;
    bool operator==(const Live&) const = default;
  };
  // Returns the sums of all live objects of a kind in the ledger.
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
  friend std::ostream& operator<<(std::ostream& out, const Live& sum) {
    return out << sum.count << " objects, " << sum.bytes << " bytes, " << sum.uncertain
               << " uncertain, " << sum.shared << " shared";
  }

  // The list of the device's holders that the session asks.
  FakeList list;
  // Returns the parts of the shim that the session calls, with `list` and its clock.
  Surroundings with_list() {
    Surroundings around = shim.around(list.clock);
    around.holders = &list;
    return around;
  }
  // The session under test, which can ask `list`.
  Session beside{*writer, real, with_list(), {}};
  // Number of streams that the fake driver has made; makes their handles unique.
  static inline std::uint64_t made = 0;
  // Called at the end of each reading of the device; empty: nothing is called.
  static inline std::function<void()> after_reading;
};

}  // namespace cuwarden::hooks
