// Incidents: the facts that are kept about refused requests, and the questions asked at that
// moment.
#include <functional>

#include "tests/unit/hooks/fake_driver.hpp"

namespace cuwarden::hooks {
namespace {

using driver::Row;
using ledger::Fact;

class IncidentsTest : public HooksTest {
 protected:
  IncidentsTest() {
    told.clear();
    refuse = true;
    answer = CUDA_ERROR_OUT_OF_MEMORY;
    answers = true;
    mode = CU_COMPUTEMODE_DEFAULT;
    readings = 0;
  }
  static driver::RealDriver refusing() {
    driver::RealDriver real = fake_functions();
    real.cuMemAlloc_v2 = [](CUdeviceptr* out, size_t) {
      if (refuse) return answer;
      return *out = fake.next_address += 0x1000, CUDA_SUCCESS;
    };
    real.cuMemAllocAsync = [](CUdeviceptr*, size_t, CUstream) { return answer; };
    real.cuCtxCreate_v2 = [](CUcontext*, unsigned, CUdevice) { return answer; };
    real.cuDevicePrimaryCtxRetain = [](CUcontext*, CUdevice) { return answer; };
    real.cuMemGetInfo_v2 = [](size_t* free, size_t* total) {
      ++readings;
      errno = EIO;
      if (!answers) return CUDA_ERROR_UNKNOWN;
      return *free = 100, *total = 1000, CUDA_SUCCESS;
    };
    real.cuDeviceTotalMem_v2 = [](size_t* total, CUdevice) {
      errno = EIO;
      return *total = 1000, CUDA_SUCCESS;
    };
    real.cuDeviceGetAttribute = [](int* value, CUdevice_attribute which, CUdevice) {
      errno = EIO;
      if (!answers) return CUDA_ERROR_DEVICE_UNAVAILABLE;
      return *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_MODE ? mode : 0, CUDA_SUCCESS;
    };
    return real;
  }

  auto call(Row row, auto body, auto... arguments) {
    return hooked_on(real, session, row, body, arguments...);
  }
  CUresult ask(std::size_t bytes) {
    CUdeviceptr memory = 0;
    return call(Row::cuMemAlloc_v2, cuMemAlloc_v2, &memory, bytes);
  }
  CUresult ask_for_context() {
    CUcontext made = nullptr;
    return call(Row::cuCtxCreate_v2, cuCtxCreate_v2, &made, 0u, CUdevice{0});
  }
  CUresult ask_in_stream_order(std::size_t bytes) {
    CUdeviceptr memory = 0;
    return call(Row::cuMemAllocAsync, cuMemAllocAsync, &memory, bytes, CUstream{});
  }
  std::vector<ledger::IncidentView> incidents() const {
    std::vector<ledger::IncidentView> found;
    const ledger::Reader from = reader();
    for (std::uint64_t i = 1; i < from.rows(ledger::RegionId::incidents); ++i)
      if (const auto incident = from.incident(i)) found.push_back(*incident);
    return found;
  }
  std::vector<ledger::IncidentHolderView> holders() const {
    std::vector<ledger::IncidentHolderView> found;
    const ledger::Reader from = reader();
    for (std::uint64_t i = 1; i < from.rows(ledger::RegionId::incident_holders); ++i)
      if (const auto holder = from.incident_holder(i)) found.push_back(*holder);
    return found;
  }

  static inline bool refuse = true;
  static inline CUresult answer = CUDA_ERROR_OUT_OF_MEMORY;
  static inline bool answers = true;  // true if the driver answers questions about the device
  static inline int mode = CU_COMPUTEMODE_DEFAULT;
  static inline int readings = 0;
  static inline std::vector<IncidentId> told;
  struct Probes final : QuietShim {
    void explain(rescue::Incident& incident) noexcept override { add_facts(incident); }
    void settled(const rescue::Incident& incident, rescue::Outcome) noexcept override {
      told.push_back(incident.id);
    }
    std::function<void(rescue::Incident&)> add_facts = [](rescue::Incident&) {};
  } probes;
  const driver::RealDriver real = refusing();
  Session session{*writer, real, probes.around(), {}};
};

TEST_F(IncidentsTest, the_first_refusal_is_kept_with_its_facts_and_repeats_are_counted) {
  errno = ENOENT;
  EXPECT_EQ(ask(5000), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(ask(7000), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(ask(6000), CUDA_ERROR_OUT_OF_MEMORY);
  const auto all = incidents();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].bytes, 5000u);
  EXPECT_EQ(all[0].last_bytes, 6000u);
  EXPECT_EQ(all[0].repeats, 2u);
  EXPECT_EQ(all[0].result, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(all[0].fact(Fact::total_bytes), 1000u);
  EXPECT_EQ(all[0].fact(Fact::free_bytes), 100u);
  EXPECT_EQ(all[0].fact(Fact::ram_bytes), std::nullopt);
  EXPECT_EQ(readings, 1) << "a program that fails in a loop is not slowed down";
  EXPECT_EQ(told, std::vector{all[0].id});
}

TEST_F(IncidentsTest, the_largest_holders_are_kept_though_their_memory_is_freed_later) {
  refuse = false;
  CUdeviceptr memory = 0;
  call(Row::cuMemAlloc_v2, cuMemAlloc_v2, &memory, std::size_t{400});
  call(Row::cuMemAllocPitch, cuMemAlloc_v2, &memory, std::size_t{300});
  refuse = true;
  ask(5000);
  refuse = false;
  call(Row::cuMemFree_v2, cuMemFree_v2, memory);
  const auto all = incidents();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].live_bytes[static_cast<std::size_t>(Kind::device)], 700u);
  const auto most = holders();
  ASSERT_EQ(most.size(), 2u);
  EXPECT_EQ(most[0].bytes, 400u);
  EXPECT_EQ(most[1].bytes, 300u);
  EXPECT_EQ(most[0].incident, all[0].id);
}

TEST_F(IncidentsTest, facts_that_a_probe_adds_are_in_the_ledger_beside_those_of_the_driver) {
  refuse = false;
  CUdeviceptr memory = 0;
  call(Row::cuMemAlloc_v2, cuMemAlloc_v2, &memory, std::size_t{400});
  refuse = true;
  probes.add_facts = [](rescue::Incident& incident) {
    EXPECT_EQ(incident.request.bytes, 5000u);
    EXPECT_EQ(incident.facts.bytes, 5000u);
    EXPECT_EQ(incident.facts.result, CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(incident.facts.fact(Fact::free_bytes), 100u) << "the driver is asked first";
    EXPECT_EQ(incident.facts.live_bytes[static_cast<std::size_t>(Kind::device)], 400u);
    ASSERT_EQ(incident.holdings.all().size(), 1u);
    incident.holdings.all()[0].growth_bytes_per_minute = 60;
    incident.facts.set(Fact::ram_bytes, 7);
  };
  ask(5000);
  ASSERT_EQ(incidents().size(), 1u);
  EXPECT_EQ(incidents()[0].fact(Fact::ram_bytes), 7u);
  EXPECT_EQ(incidents()[0].fact(Fact::free_bytes), 100u);
  ASSERT_EQ(holders().size(), 1u) << "each holder has one row, however often it is written";
  EXPECT_EQ(holders()[0].growth_bytes_per_minute, 60u);
  EXPECT_EQ(holders()[0].bytes, 400u);
}

TEST_F(IncidentsTest, a_process_that_ends_in_a_probe_has_the_facts_before_it) {
  probes.add_facts = [this](rescue::Incident&) {
    ASSERT_EQ(incidents().size(), 1u);
    EXPECT_EQ(incidents()[0].fact(Fact::free_bytes), 100u);
  };
  ask(5000);
  EXPECT_EQ(told.size(), 1u);
}

TEST_F(IncidentsTest, OtherErrorsAreNone) {
  for (const CUresult error : {CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                               CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_DEINITIALIZED}) {
    answer = error;
    EXPECT_EQ(ask(5000), error);
  }
  EXPECT_TRUE(incidents().empty());
  EXPECT_TRUE(told.empty());
}

TEST_F(IncidentsTest, a_thread_that_is_served_an_equal_request_later_has_recovered) {
  ask(5000);
  refuse = false;
  EXPECT_EQ(ask(4000), CUDA_SUCCESS);  // a smaller request is not equal
  EXPECT_EQ(incidents()[0].recovered, 0u);
  EXPECT_EQ(ask(5000), CUDA_SUCCESS);
  EXPECT_EQ(ask(5000), CUDA_SUCCESS);  // this request never failed in this thread
  EXPECT_EQ(incidents()[0].recovered, 1u);
}

TEST_F(IncidentsTest, all_attempts_until_the_request_is_served_are_recovered) {
  ask(5000);
  ask(5000);
  refuse = false;
  EXPECT_EQ(ask(5000), CUDA_SUCCESS);
  EXPECT_EQ(incidents()[0].recovered, 2u);
  EXPECT_EQ(incidents()[0].repeats, 1u);
}

TEST_F(IncidentsTest, an_attempt_that_was_given_up_is_not_recovered_by_a_later_one) {
  ask(5000);
  refuse = false;
  ask(100);  // the program goes on
  refuse = true;
  ask(5000);
  refuse = false;
  ask(5000);
  EXPECT_EQ(incidents()[0].repeats, 1u);
  EXPECT_EQ(incidents()[0].recovered, 1u);
}

TEST_F(IncidentsTest, under_a_capture_the_device_is_also_read_for_an_incident) {
  call(Row::cuStreamBeginCapture, cuStreamBeginCapture, CUstream{});
  EXPECT_EQ(ask_in_stream_order(5000), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(incidents().at(0).fact(Fact::free_bytes), 100u);
}

TEST_F(IncidentsTest, the_device_is_not_read_if_that_would_end_a_capture) {
  const_cast<driver::RealDriver&>(real).cuThreadExchangeStreamCaptureMode = nullptr;
  readings = 0;
  EXPECT_EQ(ask(5000), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(readings, 0);
  EXPECT_EQ(incidents().at(0).fact(Fact::free_bytes), std::nullopt);
}

TEST_F(IncidentsTest, a_context_that_the_compute_mode_forbids_is_an_incident_with_the_mode) {
  mode = CU_COMPUTEMODE_EXCLUSIVE_PROCESS;
  answer = CUDA_ERROR_DEVICE_UNAVAILABLE;
  errno = ENOENT;
  EXPECT_EQ(ask_for_context(), CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_EQ(errno, ENOENT);
  ASSERT_EQ(incidents().size(), 1u);
  EXPECT_EQ(incidents()[0].asked, ledger::Asked::context);
  EXPECT_EQ(incidents()[0].result, CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_EQ(incidents()[0].fact(Fact::compute_mode), 3u);
  mode = CU_COMPUTEMODE_PROHIBITED;
  answer = CUDA_ERROR_UNKNOWN;
  fake.primary_active = false;
  CUcontext made = nullptr;
  call(Row::cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, &made, CUdevice{0});
  ASSERT_EQ(incidents().size(), 2u);
  EXPECT_EQ(incidents()[1].fact(Fact::compute_mode), 2u);
}

TEST_F(IncidentsTest, the_error_of_a_forbidding_mode_without_that_mode_is_no_incident) {
  const std::pair<int, CUresult> cases[] = {{CU_COMPUTEMODE_DEFAULT, CUDA_ERROR_DEVICE_UNAVAILABLE},
                                            {CU_COMPUTEMODE_DEFAULT, CUDA_ERROR_UNKNOWN},
                                            {CU_COMPUTEMODE_EXCLUSIVE_PROCESS, CUDA_ERROR_UNKNOWN},
                                            {CU_COMPUTEMODE_PROHIBITED, CUDA_ERROR_INVALID_DEVICE},
                                            {CU_COMPUTEMODE_PROHIBITED, CUDA_SUCCESS}};
  for (const auto& [present, error] : cases) {
    mode = present;
    answer = error;
    EXPECT_EQ(ask_for_context(), error);
  }
  // Neither is this error of a device that does not answer any more, nor of a request for memory.
  mode = CU_COMPUTEMODE_PROHIBITED;
  answer = CUDA_ERROR_DEVICE_UNAVAILABLE;
  EXPECT_EQ(ask(5000), CUDA_ERROR_DEVICE_UNAVAILABLE);
  answers = false;
  EXPECT_EQ(ask_for_context(), CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_TRUE(incidents().empty());
}

TEST_F(IncidentsTest, the_compute_mode_is_noteworthy_if_it_is_not_the_default) {
  EXPECT_EQ(ask_for_context(), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(incidents().size(), 1u);
  EXPECT_EQ(incidents()[0].fact(Fact::compute_mode), std::nullopt);
}

TEST_F(IncidentsTest, a_device_that_cannot_be_read_still_has_its_size) {
  answers = false;
  EXPECT_EQ(ask(5000), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(incidents().size(), 1u);
  EXPECT_EQ(incidents()[0].fact(Fact::total_bytes), 1000u);
  EXPECT_EQ(incidents()[0].fact(Fact::free_bytes), std::nullopt);
  EXPECT_EQ(incidents()[0].fact(Fact::memory_pool_idle_bytes), std::nullopt);
}

TEST_F(IncidentsTest, the_table_of_incidents_is_bounded) {
  for (int i = 0; i < 1500; ++i)
    session.refusals.rescue(Caller{HookId{0}, __builtin_frame_address(0)}, CUDA_ERROR_OUT_OF_MEMORY,
                            {ledger::Asked::launch, DeviceOrdinal{i}},
                            [] { return CUDA_ERROR_OUT_OF_MEMORY; });
  EXPECT_LE(incidents().size(), 1000u);
  EXPECT_GE(incidents().size(), 16u);
}

}  // namespace
}  // namespace cuwarden::hooks
