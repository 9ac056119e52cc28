// A fake driver whose calls take as much device memory as a test says, without being asked for any.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime_hooks/hooks/execution/first_launch.hpp"
#include "tests/unit/hooks/fake_driver.hpp"

namespace cuwarden::hooks {

using driver::Row;

// Number of bytes of a mebibyte.
inline constexpr std::size_t mib = 1 << 20;
// Number of multiprocessors of the fake device, and most threads that each runs at once.
inline constexpr int processors = 2, threads_each = 1024;

// A kernel of the fake driver. Its handle (CUfunction) is its address.
struct FakeKernel {
  // Bytes of local memory that each thread of the kernel needs.
  int local_bytes = 0;
  const char* name = "";  // mangled name
  // Most threads that a block of the kernel may have, by the registers that they need.
  int most_threads = 1024;
  // Bytes of the device that the driver takes for the kernel's code. The first cuFuncGetAttribute
  // for the kernel loads the code.
  std::size_t code_bytes = 0;
};

// A session on a fake driver whose calls take as much device memory as a test says, without being
// asked for any.
class ImplicitMemoryTest : public HooksTest {
 protected:
  ImplicitMemoryTest() {
    auto& functions = const_cast<driver::RealDriver&>(real);
    functions.cuModuleLoadData = [](CUmodule*, const void*) { return in_call(); };
    functions.cuModuleUnload = [](CUmodule) { return in_call(); };
    functions.cuOccupancyMaxActiveBlocksPerMultiprocessor = [](int*, CUfunction, int, size_t) {
      return in_call();
    };
    functions.cuGraphInstantiateWithFlags = [](CUgraphExec* out, CUgraph, unsigned long long) {
      return *out = reinterpret_cast<CUgraphExec>(0x5000), in_call();
    };
    functions.cuStreamCreate = [](CUstream*, unsigned) { return in_call(); };
    functions.cuCtxSetLimit = [](CUlimit, size_t) { return in_call(); };
    functions.cuFuncGetAttribute = [](int* value, CUfunction_attribute attribute,
                                      CUfunction handle) {
      ++fake.questions;
      auto* const kernel = reinterpret_cast<FakeKernel*>(handle);
      fake.free_bytes -= std::exchange(kernel->code_bytes, 0);
      *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? kernel->most_threads
                                                                    : kernel->local_bytes;
      return CUDA_SUCCESS;
    };
#if CUDA_VERSION >= 12030
    functions.cuFuncGetName = [](const char** name, CUfunction kernel) {
      return *name = reinterpret_cast<FakeKernel*>(kernel)->name, CUDA_SUCCESS;
    };
#endif
    functions.cuDeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice) {
      *value = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? processors : threads_each;
      return CUDA_SUCCESS;
    };
    fake.total_bytes = 4096 * mib;
    fake.free_bytes = 3000 * mib;
    takes = 0;
    answer = CUDA_SUCCESS;
    meanwhile = nullptr;
  }
  ~ImplicitMemoryTest() override { meanwhile = nullptr; }

  // Uses up the time that the session may spend in this process on reading devices. After this, the
  // session does not measure the memory that calls take.
  void use_up_readings() {
    session.implicit.reading_took(std::uint64_t{1} << 60);
    session.implicit.reading_took(0);  // the last reading was fast
  }
  // Loads a module, for which the driver takes `bytes` of the device. Returns the hook's result.
  CUresult load(std::int64_t bytes) {
    takes = bytes;
    CUmodule module = nullptr;
    return hooked(Row::cuModuleLoadData, cuModuleLoadData, &module, nullptr);
  }
  // Calls the hook of cuOccupancyMaxActiveBlocksPerMultiprocessor for the kernel. The driver takes
  // `bytes` of the device in the call. Returns true if the session read the device's free bytes
  // because of the call.
  bool ask(FakeKernel& kernel, std::int64_t bytes) {
    takes = bytes;
    const int readings = fake.readings;
    int value = 0;
    hooked(Row::cuOccupancyMaxActiveBlocksPerMultiprocessor,
           cuOccupancyMaxActiveBlocksPerMultiprocessor, &value,
           reinterpret_cast<CUfunction>(&kernel), 128, std::size_t{0});
    return fake.readings != readings;
  }
  // Unloads a module, for which the driver gives `bytes` of the device back. Returns the hook's
  // result.
  CUresult unload(std::int64_t bytes) {
    takes = -bytes;
    return hooked(Row::cuModuleUnload, cuModuleUnload, nullptr);
  }
  // Sets a limit of the context (cuCtxSetLimit) to `value`, for which the driver takes `bytes` of
  // the device. Returns the hook's result.
  CUresult set_limit(CUlimit limit, std::size_t value, std::int64_t bytes) {
    takes = bytes;
    return hooked(Row::cuCtxSetLimit, cuCtxSetLimit, limit, value);
  }
  // Launches the kernel, for which the driver takes `bytes` of the device. Returns the result for
  // the program.
  [[gnu::noinline]] CUresult launch(FakeKernel& kernel, std::int64_t bytes) {
    takes = bytes;
    const auto handle = reinterpret_cast<CUfunction>(&kernel);
    if (launched_kernels.has(handle)) return in_call();
    HookedCall call(real, &session, Row::cuLaunchKernel);
    return first_launch(call, handle, block_of, [] { return in_call(); });
  }
  // Returns the ledger's figures of device 0; empty if it has none.
  ledger::DeviceView device() const {
    const ledger::Reader from = reader();
    for (std::uint64_t i = 1; i < from.rows(ledger::RegionId::devices); ++i)
      if (const auto found = from.device(i); found && found->ordinal.value == 0) return *found;
    return {};
  }
  // Returns the ledger's sums of memory that calls took on device 0 without being asked.
  ledger::ImplicitBytes bytes() const { return device().implicit; }
  // Sums of a kind of memory in the ledger. count: number of live objects that have memory of this
  // kind. bytes: their bytes. ended: number of objects that were freed or released.
  struct Live {
    std::uint64_t count = 0, bytes = 0, ended = 0;
    bool operator==(const Live&) const = default;
  };
  // Returns the sums of all groups of a kind of memory in the ledger.
  Live live(Kind kind) const {
    Live sum;
    const ledger::Reader from = reader();
    for (std::uint64_t i = 1; i < from.rows(ledger::RegionId::groups); ++i) {
      const auto group = from.group(i);
      if (!group || group->kind != kind) continue;
      sum.count += group->live_count;
      sum.bytes += group->live_bytes;
      sum.ended += group->frees + group->released_count;
    }
    return sum;
  }
  // Returns the thing that the refused call asked for, for each incident in the ledger, in order.
  std::vector<ledger::Asked> refused() const {
    std::vector<ledger::Asked> found;
    const ledger::Reader from = reader();
    for (std::uint64_t i = 1; i < from.rows(ledger::RegionId::incidents); ++i)
      if (const auto incident = from.incident(i)) found.push_back(incident->asked);
    return found;
  }

  // Number of threads of a block in each launch.
  std::uint64_t block_of = 128;

  // The fake driver's work in each call: takes `takes` bytes of the device, calls `meanwhile` if it
  // is set and empties it, and returns `answer`.
  static CUresult in_call() {
    fake.free_bytes -= static_cast<std::size_t>(takes);
    if (const auto now = std::exchange(meanwhile, nullptr)) now();  // called once
    return answer;
  }
  // Bytes of the device that each call of the driver takes; negative: the call frees memory.
  static inline std::int64_t takes;
  // Result of each call.
  static inline CUresult answer;
  // Called once, during the next call of the driver, in place of other threads. Empty: nothing is
  // called.
  static inline std::function<void()> meanwhile;
};

}  // namespace cuwarden::hooks
