// A session on a fake driver that makes and ends streams, modules and executable graphs, for which
// it takes as much device memory as a test says.
#pragma once

#include <algorithm>
#include <functional>
#include <semaphore>
#include <thread>
#include <vector>

#include "tests/unit/hooks/implicit_memory_fixture.hpp"

namespace cuwarden::hooks {

// A session whose streams, modules and executable graphs take as much device memory as a test says.
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
  // Makes a stream, for which the driver takes `bytes` of the device. Returns its handle.
  CUstream make_stream(std::int64_t bytes) {
    takes = bytes;
    CUstream stream = nullptr;
    hooked(Row::cuStreamCreate, cuStreamCreate, &stream, 0u);
    return stream;
  }
  // Destroys a stream, for which the driver frees `gives_back` bytes of the device.
  void destroy(CUstream stream, std::int64_t gives_back) {
    takes = -gives_back;
    hooked(Row::cuStreamDestroy_v2, cuStreamDestroy_v2, stream);
  }
  // Tells the session the device's free bytes, as at the end of the process.
  void read_device() {
    const std::uint64_t begun = session.objects.reading_begins(DeviceOrdinal{0});
    session.objects.device_was_read(DeviceOrdinal{0}, {fake.total_bytes, fake.free_bytes}, begun);
  }
  // Returns RecordView::difference of each live object of a kind, in ascending order: the number of
  // the measured difference of free bytes in which the object has a part, or 0.
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
  // Calls work() while another thread is inside call(): the driver has taken the memory for that
  // call, and has not returned from it.
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
  // Number of objects that the fake driver has made; makes their handles unique.
  static inline std::uint64_t made = 0;
};

}  // namespace cuwarden::hooks
