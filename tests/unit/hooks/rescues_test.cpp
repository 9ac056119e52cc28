// Requests that the driver refuses while rescues are on: the program's result, and the records.
#include "tests/unit/hooks/fake_driver.hpp"
#include "tests/unit/manual_clock.hpp"

namespace cuwarden::hooks {
namespace {

using driver::Row;

class RescuesTest : public HooksTest {
 protected:
  RescuesTest() {
    refusals = attempts = 0;
    other_error = CUDA_SUCCESS;
    stages.clear();
    attempts_by_then.clear();
    synchronised.clear();
  }
  static driver::RealDriver refusing() {
    driver::RealDriver real = fake_functions();
    real.cuMemAlloc_v2 = [](CUdeviceptr* out, size_t) {
      ++attempts;
      if (refusals > 0) return --refusals, CUDA_ERROR_OUT_OF_MEMORY;
      if (other_error != CUDA_SUCCESS) return other_error;
      return *out = fake.next_address += 0x1000, CUDA_SUCCESS;
    };
    real.cuMemFreeAsync = [](CUdeviceptr, CUstream) { return CUDA_SUCCESS; };
    real.cuCtxDetach = [](CUcontext) { return CUDA_SUCCESS; };
    real.cuStreamDestroy_v2 = [](CUstream) { return CUDA_SUCCESS; };
    real.cuEventCreate = [](CUevent* event, unsigned) {
      return *event = reinterpret_cast<CUevent>(0x99), CUDA_SUCCESS;
    };
    real.cuEventRecord = [](CUevent, CUstream stream) {
      return synchronised.push_back(stream), CUDA_SUCCESS;
    };
    real.cuEventQuery = [](CUevent) { return CUDA_SUCCESS; };
    real.cuEventSynchronize = [](CUevent) { return CUDA_SUCCESS; };
    real.cuEventDestroy_v2 = [](CUevent) { return CUDA_SUCCESS; };
    return real;
  }
  auto call(Row row, auto body, auto... arguments) {
    return hooked_on(real, session, row, body, arguments...);
  }
  CUresult ask(std::size_t bytes) {
    CUdeviceptr memory = 0;
    return call(Row::cuMemAlloc_v2, cuMemAlloc_v2, &memory, bytes);
  }
  void free_in(CUstream stream) {
    call(Row::cuMemFreeAsync, cuMemFreeAsync, CUdeviceptr{0x77}, stream);
  }
  ledger::IncidentView incident() const { return reader().incident(1).value(); }
  std::vector<ledger::RungOutcome> outcomes() const {
    std::vector<ledger::RungOutcome> found;
    for (std::uint64_t i = 1; i < reader().rows(ledger::RegionId::incident_rungs); ++i)
      found.push_back(reader().incident_rung(i)->outcome);
    return found;
  }
  std::uint64_t failures() const { return reader().group(incident().group.value)->failures; }

  static inline int refusals = 0, attempts = 0;
  static inline CUresult other_error = CUDA_SUCCESS;
  enum class Stage { refused, settled };
  static inline std::vector<Stage> stages;
  static inline std::vector<int> attempts_by_then;
  static inline std::vector<CUstream> synchronised;
  struct Probes final : QuietShim {
    void explain(rescue::Incident&) noexcept override { note(Stage::refused); }
    void settled(const rescue::Incident&, rescue::Outcome) noexcept override {
      note(Stage::settled);
    }
    static void note(Stage stage) {
      stages.push_back(stage);
      attempts_by_then.push_back(attempts);
    }
  } probes;
  ManualClock clock;
  const driver::RealDriver real = refusing();
  Session session{*writer,
                  real,
                  probes.around(clock),
                  {.pool = PoolMode::rescue, .sync_timeout_ns = 100'000'000}};
};

TEST_F(RescuesTest, a_request_that_a_rescue_serves_is_no_failure_and_has_its_record) {
  refusals = 1;
  errno = ENOENT;
  EXPECT_EQ(ask(5000), CUDA_SUCCESS);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(attempts, 2);
  EXPECT_EQ(records().size(), 1u);
  EXPECT_EQ(incident().bytes, 5000u);
  EXPECT_EQ(incident().rescued[static_cast<int>(ledger::Rung::retry)], 1u);
  EXPECT_EQ(incident().rescued_bytes, 5000u);
  EXPECT_EQ(incident().recovered, 0u) << "the program did nothing";
  EXPECT_EQ(failures(), 0u);
  EXPECT_EQ(outcomes(), std::vector{ledger::RungOutcome::served});
  EXPECT_EQ(stages, (std::vector{Stage::refused, Stage::settled}));
  EXPECT_EQ(attempts_by_then, (std::vector{1, 2})) << "the outcome is not known at the first stage";
}

TEST_F(RescuesTest, a_request_that_no_rung_helps_fails_once_and_is_not_rescued_again_at_once) {
  refusals = 1000;
  EXPECT_EQ(ask(5000), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(attempts, 2);
  EXPECT_EQ(ask(5000), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(attempts, 3);
  EXPECT_EQ(failures(), 2u);
  EXPECT_EQ(incident().repeats, 1u);
  EXPECT_EQ(outcomes().size(), 3u) << "only the first refusal has rungs";
  EXPECT_TRUE(records().empty());
}

TEST_F(RescuesTest, the_program_gets_the_first_error_and_not_that_of_another_try) {
  refusals = 1;
  other_error = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(ask(5000), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(RescuesTest, an_error_other_than_lack_of_memory_goes_to_the_program) {
  other_error = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(ask(5000), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(attempts, 1);
}

TEST_F(RescuesTest, streams_in_which_memory_was_freed_are_synchronised_while_they_exist) {
  const auto first = reinterpret_cast<CUstream>(0x100), next = reinterpret_cast<CUstream>(0x200);
  free_in(first);
  free_in(next);
  call(Row::cuStreamDestroy_v2, cuStreamDestroy_v2, first);
  refusals = 2;
  EXPECT_EQ(ask(5000), CUDA_SUCCESS);
  EXPECT_EQ(synchronised, std::vector{next});
  EXPECT_EQ(incident().rescued[static_cast<int>(ledger::Rung::synchronise)], 1u);
}

TEST_F(RescuesTest, a_contexts_end_forgets_its_streams_in_each_way_to_end_it) {
  const auto ends = [&](auto end) {
    free_in(reinterpret_cast<CUstream>(0x100));
    end();
    refusals = 2;
    ask(5000);
    EXPECT_TRUE(synchronised.empty());
  };
  const CUcontext context = fake.current;
  ends([&] { call(Row::cuCtxDestroy_v2, cuCtxDestroy_v2, context); });
  ends([&] { call(Row::cuCtxDetach, cuCtxDetach, context); });
  ends([&] { call(Row::cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset_v2, CUdevice{0}); });
  ends([&] { call(Row::cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease_v2, CUdevice{0}); });
}

TEST_F(RescuesTest, a_stream_is_left_alone_while_it_is_captured) {
  const auto stream = reinterpret_cast<CUstream>(0x100);
  static bool is_captured = false;
  is_captured = true;
  auto& changed = const_cast<driver::RealDriver&>(real);
  changed.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus* status) {
    *status = is_captured ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  };
  changed.cuStreamEndCapture = [](CUstream, CUgraph*) { return is_captured = false, CUDA_SUCCESS; };
  free_in(stream);
  call(Row::cuStreamBeginCapture, cuStreamBeginCapture, stream);
  refusals = 2;
  ask(5000);
  EXPECT_TRUE(synchronised.empty());
  CUgraph graph = nullptr;
  call(Row::cuStreamEndCapture, cuStreamEndCapture, stream, &graph);
  refusals = 2;
  ask(5000);
  EXPECT_EQ(synchronised, std::vector{stream});
}

TEST_F(RescuesTest, a_rescue_after_the_programs_own_retry_counts_as_recovery) {
  refusals = 2;
  EXPECT_EQ(ask(5000), CUDA_ERROR_OUT_OF_MEMORY);
  refusals = 1;
  clock.advance(110'000'000);  // from 100 ms on, rungs are tried again
  EXPECT_EQ(ask(5000), CUDA_SUCCESS);
  EXPECT_EQ(incident().repeats, 1u);
  EXPECT_EQ(incident().recovered, 1u);
  EXPECT_EQ(incident().rescued[static_cast<int>(ledger::Rung::retry)], 1u);
  EXPECT_EQ(failures(), 1u);
}

TEST_F(RescuesTest, a_request_served_in_the_ten_seconds_after_its_refusal_counts_as_recovery) {
  constexpr std::uint64_t ten_seconds_ns = 10'000'000'000;
  refusals = 2;
  EXPECT_EQ(ask(5000), CUDA_ERROR_OUT_OF_MEMORY);
  clock.advance(ten_seconds_ns);
  EXPECT_EQ(ask(5000), CUDA_SUCCESS);
  EXPECT_EQ(incident().recovered, 1u);
  refusals = 2;
  EXPECT_EQ(ask(5000), CUDA_ERROR_OUT_OF_MEMORY);
  clock.advance(ten_seconds_ns + 1);
  EXPECT_EQ(ask(5000), CUDA_SUCCESS);
  EXPECT_EQ(incident().recovered, 1u) << "other memory may have become free by then";
}

TEST_F(RescuesTest,
       a_failure_after_a_served_request_is_an_incident_of_its_own_with_its_recoveries) {
  for (const std::size_t bytes : {5000u, 6000u}) {
    refusals = bytes == 5000 ? 1 : 1000;
    EXPECT_EQ(ask(bytes), bytes == 5000 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
  }
  refusals = 0;
  EXPECT_EQ(ask(6000), CUDA_SUCCESS);
  const auto served = incident(), failed = reader().incident(served.id.value + 1).value();
  EXPECT_EQ(served.repeats, 0u);
  EXPECT_EQ(served.recovered, 0u);
  EXPECT_EQ(failed.bytes, 6000u);
  EXPECT_EQ(failed.repeats, 0u);
  EXPECT_EQ(failed.failed, 1u);
  EXPECT_EQ(failed.recovered, 1u);
  std::vector<std::uint32_t> orders;
  for (std::uint64_t i = 1; i < reader().rows(ledger::RegionId::incident_rungs); ++i) {
    const auto rung = reader().incident_rung(i).value();
    if (rung.incident == failed.id) orders.push_back(rung.order);
  }
  EXPECT_EQ(orders, (std::vector<std::uint32_t>{1, 2, 3}));
  using enum Stage;
  EXPECT_EQ(stages, (std::vector{refused, settled, refused, settled}));
}

}  // namespace
}  // namespace cuwarden::hooks
