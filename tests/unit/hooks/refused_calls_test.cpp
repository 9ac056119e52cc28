// Calls other than allocations that the driver refuses for lack of memory while rescues are on. The
// ladder repeats them, and the program gets the result of the repetition.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "runtime_hooks/driver/submission_gate.hpp"
#include "runtime_hooks/hooks/execution/first_launch.hpp"
#include "tests/unit/hooks/fake_driver.hpp"
#include "tests/unit/manual_clock.hpp"

namespace cuwarden::hooks {
namespace {

using driver::Row;

constexpr CUresult no_memory = CUDA_ERROR_OUT_OF_MEMORY;

class RefusedCallsTest : public HooksTest {
 protected:
  RefusedCallsTest() {
    refusals = attempts = 0;
    error = no_memory;
    launched_kernels.forget_all();
    loaded_kernels.forget_all();
  }
  // Returns the driver's answer to a call of the program: `error` for the first `refusals` calls.
  static CUresult answer() {
    ++attempts;
    return refusals > 0 ? (--refusals, error) : CUDA_SUCCESS;
  }
  static driver::RealDriver refusing() {
    driver::RealDriver real = fake_functions();
    real.cuStreamCreate = [](CUstream*, unsigned) { return answer(); };
    real.cuStreamDestroy_v2 = [](CUstream) { return answer(); };
    real.cuCtxSetLimit = [](CUlimit, size_t) { return answer(); };
    real.cuModuleLoadData = [](CUmodule*, const void*) { return answer(); };
    real.cuModuleLoadDataEx = [](CUmodule*, const void*, unsigned count, CUjit_option*,
                                 void** values) {
      for (unsigned i = 0; i < count; ++i) seen_values.push_back(values[i]);
      if (writes_values) std::fill_n(values, count, nullptr);
      return answer();
    };
    real.cuLibraryGetGlobal = [](CUdeviceptr*, size_t*, CUlibrary, const char*) {
      return answer();
    };
    real.cuModuleGetFunction = [](CUfunction*, CUmodule, const char*) { return answer(); };
    real.cuKernelGetFunction = [](CUfunction*, CUkernel) { return answer(); };
    real.cuKernelSetAttribute = [](CUfunction_attribute, int, CUkernel, CUdevice) {
      return answer();
    };
    real.cuGraphInstantiateWithFlags = [](CUgraphExec* out, CUgraph, unsigned long long) {
      return *out = reinterpret_cast<CUgraphExec>(0x5000), answer();
    };
    real.cuGraphLaunch = [](CUgraphExec, CUstream) { return submitted(); };
    real.cuGraphUpload = [](CUgraphExec, CUstream) { return submitted(); };
    real.cuCtxCreate_v2 = [](CUcontext* out, unsigned, CUdevice) {
      return *out = reinterpret_cast<CUcontext>(0x3000), answer();
    };
    real.cuDevicePrimaryCtxRetain = [](CUcontext* out, CUdevice) {
      return *out = fake.primary, answer();
    };
#if CUDA_VERSION >= 12040
    real.cuGreenCtxCreate = [](CUgreenCtx* out, CUdevResourceDesc, CUdevice, unsigned) {
      return *out = reinterpret_cast<CUgreenCtx>(0x2222), answer();
    };
#endif
    real.cuFuncGetAttribute = [](int* value, CUfunction_attribute, CUfunction) {
      return *value = 64, CUDA_SUCCESS;
    };
    return real;
  }
  // A submission is made inside the gate. Between two of them the thread is outside, so that a rung
  // can close the gate.
  static CUresult submitted() {
    const driver::CallingThreads::Thread* const mine = driver::calling_threads.known();
    submissions.push_back(mine == nullptr ? 0 : mine->submissions.load());
    return answer();
  }
  auto call(Row row, auto body, auto... arguments) {
    return hooked_on(real, session, row, body, arguments...);
  }
  CUresult create_stream() {
    CUstream stream = nullptr;
    return call(Row::cuStreamCreate, cuStreamCreate, &stream, 0u);
  }
  CUresult launch() {
    HookedCall hooked(real, &session, Row::cuLaunchKernel);
    return first_launch(hooked, reinterpret_cast<CUfunction>(0x77), 32, [] { return submitted(); });
  }
  static std::uint64_t times_rescued(const ledger::IncidentView& incident) {
    return std::accumulate(incident.rescued.begin(), incident.rescued.end(), std::uint64_t{0});
  }
  ledger::IncidentView incident() const { return reader().incident(1).value(); }

  static inline int refusals = 0, attempts = 0;
  static inline CUresult error = no_memory;
  static inline std::vector<void*> seen_values;
  static inline bool writes_values = true;  // true if a load overwrites its JIT options
  static inline std::vector<std::uint32_t> submissions;
  ManualClock clock;
  const driver::RealDriver real = refusing();
  Session session{*writer,
                  real,
                  shim.around(clock),
                  {.pool = PoolMode::rescue, .sync_timeout_ns = 100'000'000}};
};

TEST_F(RefusedCallsTest, every_call_that_lacks_memory_for_itself_is_served_once_there_is_room) {
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  CUgraphExec exec = nullptr;
  CUcontext context = nullptr;
  CUdeviceptr address = 0;
  std::size_t size = 0;
  const struct {
    const char* name;
    ledger::Asked asked;
    std::function<CUresult()> make;
  } calls[] = {
      {"cuStreamCreate", ledger::Asked::stream, [&] { return create_stream(); }},
      {"cuCtxSetLimit", ledger::Asked::limit,
       [&] { return call(Row::cuCtxSetLimit, cuCtxSetLimit, CU_LIMIT_STACK_SIZE, size_t{16384}); }},
      {"cuModuleLoadData", ledger::Asked::module,
       [&] { return call(Row::cuModuleLoadData, cuModuleLoadData, &module, nullptr); }},
      {"cuLibraryGetGlobal", ledger::Asked::module,
       [&] {
         return call(Row::cuLibraryGetGlobal, cuLibraryGetGlobal, &address, &size,
                     CUlibrary{nullptr}, "x");
       }},
      {"cuModuleGetFunction", ledger::Asked::module,
       [&] { return call(Row::cuModuleGetFunction, cuModuleGetFunction, &kernel, module, "x"); }},
      {"cuKernelGetFunction", ledger::Asked::module,
       [&] {
         return call(Row::cuKernelGetFunction, cuKernelGetFunction, &kernel,
                     reinterpret_cast<CUkernel>(0x99));
       }},
      {"cuGraphInstantiate", ledger::Asked::graph,
       [&] {
         return call(Row::cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, &exec,
                     reinterpret_cast<CUgraph>(0x55), 0ull);
       }},
      {"cuGraphUpload", ledger::Asked::graph,
       [&] { return call(Row::cuGraphUpload, cuGraphUpload, exec, CUstream{nullptr}); }},
      {"cuGraphLaunch", ledger::Asked::graph,
       [&] { return call(Row::cuGraphLaunch, cuGraphLaunch, exec, CUstream{nullptr}); }},
      {"cuCtxCreate", ledger::Asked::context,
       [&] { return call(Row::cuCtxCreate_v2, cuCtxCreate_v2, &context, 0u, 0); }},
      {"cuDevicePrimaryCtxRetain", ledger::Asked::context,
       [&] {
         fake.primary_active = false;
         return call(Row::cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, &context, 0);
       }},
      {"first launch", ledger::Asked::launch, [&] { return launch(); }},
  };
  std::uint64_t known = 1;
  for (const auto& one : calls) {
    refusals = 1;
    attempts = 0;
    EXPECT_EQ(one.make(), CUDA_SUCCESS) << one.name;
    EXPECT_EQ(attempts, 2) << one.name;
    ASSERT_EQ(reader().rows(ledger::RegionId::incidents), ++known) << one.name;
    const auto made = reader().incident(known - 1).value();
    EXPECT_EQ(made.asked, one.asked) << one.name;
    EXPECT_EQ(times_rescued(made), 1u) << one.name;
  }
}

TEST_F(RefusedCallsTest, the_program_gets_the_first_error_if_there_is_no_room) {
  refusals = 1000;
  EXPECT_EQ(create_stream(), no_memory);
  EXPECT_GT(attempts, 1);
  EXPECT_EQ(times_rescued(incident()), 0u);
  // Right after that, an equal call does not try the rungs again.
  attempts = 0;
  EXPECT_EQ(create_stream(), no_memory);
  EXPECT_EQ(attempts, 1);
  // A call for another thing does: it may need less.
  CUmodule module = nullptr;
  EXPECT_EQ(call(Row::cuModuleLoadData, cuModuleLoadData, &module, nullptr), no_memory);
  EXPECT_GT(attempts, 2);
}

TEST_F(RefusedCallsTest, another_error_is_neither_an_incident_nor_a_reason_to_repeat) {
  refusals = 1;
  error = CUDA_ERROR_INVALID_VALUE;
  EXPECT_EQ(create_stream(), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(attempts, 1);
  EXPECT_EQ(reader().rows(ledger::RegionId::incidents), 1u);
}

TEST_F(RefusedCallsTest, the_end_of_a_stream_is_never_repeated) {
  refusals = 1;
  EXPECT_EQ(call(Row::cuStreamDestroy_v2, cuStreamDestroy_v2, reinterpret_cast<CUstream>(0x9)),
            no_memory);
  EXPECT_EQ(attempts, 1);
}

// A library's kernel that was launched on one device may still have to be loaded on another.
TEST_F(RefusedCallsTest, a_call_about_a_kernel_is_repeated_on_each_device_and_after_a_launch) {
  const auto kernel = reinterpret_cast<CUkernel>(0x99);
  const auto set_on = [&](CUdevice device) {
    refusals = 1;
    attempts = 0;
    const CUresult result =
        call(Row::cuKernelSetAttribute, cuKernelSetAttribute,
             CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 4096, kernel, device);
    EXPECT_EQ(attempts, 2);
    return result;
  };
  const CUdevice here = fake.current_device, elsewhere = here + 1;
  EXPECT_EQ(set_on(elsewhere), CUDA_SUCCESS);
  EXPECT_EQ(session.ledger.groups.device_of(incident().group), DeviceOrdinal{elsewhere});
  EXPECT_EQ(set_on(here), CUDA_SUCCESS);
  launched_kernels.add(kernel);
  EXPECT_EQ(set_on(here), CUDA_SUCCESS);
  loaded_kernels.forget_all();
  EXPECT_EQ(set_on(here), CUDA_SUCCESS);
}

TEST_F(RefusedCallsTest, a_repeated_load_has_the_jit_options_of_the_program) {
  CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  void* const given[] = {reinterpret_cast<void*>(0x1234), reinterpret_cast<void*>(4096)};
  void* values[] = {given[0], given[1]};
  CUmodule module = nullptr;
  seen_values.clear();
  refusals = 1;
  EXPECT_EQ(
      call(Row::cuModuleLoadDataEx, cuModuleLoadDataEx, &module, nullptr, 2u, options, values),
      CUDA_SUCCESS);
  EXPECT_EQ(seen_values, (std::vector{given[0], given[1], given[0], given[1]}));
  EXPECT_EQ(values[1], nullptr);  // the driver's last answer stays
}

TEST_F(RefusedCallsTest, jit_options_that_the_driver_leaves_alone_are_not_written_to) {
  const std::size_t bytes = static_cast<std::size_t>(getpagesize());
  void* const page = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  writes_values = false;
  refusals = 1;
  CUjit_option options[] = {CU_JIT_LOG_VERBOSE, CU_JIT_GENERATE_DEBUG_INFO};
  CUmodule module = nullptr;
  EXPECT_EQ(call(Row::cuModuleLoadDataEx, cuModuleLoadDataEx, &module, nullptr, 2u, options,
                 static_cast<void**>(page)),
            CUDA_SUCCESS);
  EXPECT_EQ(attempts, 2);
  writes_values = true;
  munmap(page, bytes);
}

TEST_F(RefusedCallsTest, a_load_with_more_jit_options_than_can_be_kept_is_not_repeated) {
  std::vector<CUjit_option> options(100, CU_JIT_LOG_VERBOSE);
  std::vector<void*> values(100, nullptr);
  CUmodule module = nullptr;
  refusals = 1;
  EXPECT_EQ(call(Row::cuModuleLoadDataEx, cuModuleLoadDataEx, &module, nullptr, 100u,
                 options.data(), values.data()),
            no_memory);
  EXPECT_EQ(attempts, 1);
}

TEST_F(RefusedCallsTest, the_thread_is_at_the_gate_only_while_it_submits) {
  ASSERT_TRUE(driver::submission_gate.arm());
  struct Probes final : QuietShim {
    void explain(rescue::Incident&) noexcept override {
      at_the_refusal.push_back(driver::calling_threads.own()->submissions.load());
    }
    std::vector<std::uint32_t> at_the_refusal;
  } probes;
  Session own{*writer, real, probes.around(clock), {.pool = PoolMode::rescue}};
  submissions.clear();
  refusals = 1;
  EXPECT_EQ(hooked_on(real, own, Row::cuGraphLaunch, cuGraphLaunch, CUgraphExec{nullptr},
                      CUstream{nullptr}),
            CUDA_SUCCESS);
  refusals = 1;
  {
    HookedCall hooked(real, &own, Row::cuLaunchKernel);
    EXPECT_EQ(
        first_launch(hooked, reinterpret_cast<CUfunction>(0x78), 32, [] { return submitted(); }),
        CUDA_SUCCESS);
  }
  EXPECT_EQ(submissions, (std::vector<std::uint32_t>{1, 1, 1, 1}));
  EXPECT_EQ(probes.at_the_refusal, (std::vector<std::uint32_t>{0, 0}));
}

}  // namespace
}  // namespace cuwarden::hooks
