// A ladder, with the parts of the process that its rungs work with, on a fake driver. A test says
// how much memory there is, what gives memory back, and which streams and contexts must not be
// touched.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "runtime_hooks/driver/hook_list.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"
#include "runtime_hooks/rescue/ladder.hpp"
#include "tests/unit/manual_clock.hpp"
#include "tests/unit/pool/counting_driver.hpp"
#include "tests/unit/quiet_process.hpp"

namespace cuwarden::rescue {
// The state of the driver's streams, contexts and memory pools. Its memory is pool::driver.
struct FakeDriver {
  std::map<CUstream, int> polls_until_idle;  // for each stream; negative: it never becomes idle
  std::map<CUevent, CUstream> events;        // events that exist, with their streams
  std::uintptr_t made = 0;
  std::vector<CUstream> recorded, synchronised;
  std::atomic<int> queries = 0;
  std::vector<CUcontext> entered;
  std::size_t left = 0;
  CUresult event_state = CUDA_SUCCESS;
  std::uint64_t total_bytes = 0;           // the device's size; 0: the driver does not say
  std::uint64_t idle_in_memory_pools = 0;  // bytes that memory pools keep
  std::set<std::uint64_t> locked;          // page-locked memory, by address
  std::mutex lock;
  // Set by whichever thread called last.
  CUcontext made_current = nullptr;
  std::set<CUstream> captured;  // streams in a capture
};
inline FakeDriver fake;
inline thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

// A call that would end the captures in progress, unless the thread's own mode is RELAXED.
inline void may_end_captures() {
  EXPECT_TRUE(fake.captured.empty() || capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED);
}

inline driver::RealDriver fake_functions() {
  pool::driver = std::make_unique<pool::Driver>();
  driver::RealDriver real = pool::functions();
  real.cuCtxGetCurrent = [](CUcontext* context) {
    return *context = reinterpret_cast<CUcontext>(0x700), CUDA_SUCCESS;
  };
  real.cuCtxGetDevice = [](CUdevice* device) { return *device = 0, CUDA_SUCCESS; };
  real.cuDeviceTotalMem_v2 = [](size_t* bytes, CUdevice) {
    return *bytes = fake.total_bytes, CUDA_SUCCESS;
  };
  real.cuMemHostAlloc = [](void** out, size_t bytes, unsigned) {
    *out = reinterpret_cast<void*>((fake.locked.size() + 1) << 40 | bytes);
    return fake.locked.insert(reinterpret_cast<std::uint64_t>(*out)), CUDA_SUCCESS;
  };
  real.cuMemFreeHost = [](void* address) {
    EXPECT_EQ(fake.locked.erase(reinterpret_cast<std::uint64_t>(address)), 1u);
    return CUDA_SUCCESS;
  };
  real.cuDeviceGet = [](CUdevice* device, int ordinal) { return *device = ordinal, CUDA_SUCCESS; };
  real.cuDeviceGetDefaultMemPool = [](CUmemoryPool* pool, CUdevice) {
    return *pool = reinterpret_cast<CUmemoryPool>(0x900), CUDA_SUCCESS;
  };
  real.cuMemPoolGetAttribute = [](CUmemoryPool, CUmemPool_attribute which, void* value) {
    const bool is_reserved = which == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
    *static_cast<cuuint64_t*>(value) = is_reserved ? fake.idle_in_memory_pools : 0;
    return CUDA_SUCCESS;
  };
  real.cuDeviceGetGraphMemAttribute = [](CUdevice, CUgraphMem_attribute, void* value) {
    return *static_cast<cuuint64_t*>(value) = 0, CUDA_SUCCESS;
  };
  real.cuDeviceGraphMemTrim = [](CUdevice) { return CUDA_SUCCESS; };
  real.cuMemPoolTrimTo = [](CUmemoryPool, size_t) {
    return fake.idle_in_memory_pools = 0, CUDA_SUCCESS;
  };
  real.cuEventCreate = [](CUevent* event, unsigned) {
    *event = reinterpret_cast<CUevent>(++fake.made);
    return fake.events[*event] = nullptr, CUDA_SUCCESS;
  };
  real.cuEventRecord = [](CUevent event, CUstream stream) {
    EXPECT_FALSE(fake.captured.contains(stream)) << "the event becomes part of the graph";
    fake.recorded.push_back(stream);
    return fake.events.at(event) = stream, CUDA_SUCCESS;
  };
  real.cuEventQuery = [](CUevent event) {
    may_end_captures();
    ++fake.queries;
    int& polls = fake.polls_until_idle[fake.events.at(event)];
    if (polls == 0) return fake.event_state;
    polls -= polls > 0 ? 1 : 0;
    return CUDA_ERROR_NOT_READY;
  };
  real.cuEventSynchronize = [](CUevent event) {
    may_end_captures();
    // The event must have come; a real driver would wait for the device here.
    EXPECT_EQ(fake.polls_until_idle[fake.events.at(event)], 0);
    return fake.synchronised.push_back(fake.events.at(event)), CUDA_SUCCESS;
  };
#if CUDA_VERSION >= 12050
  // A null stream stands for all streams of the context.
  real.cuCtxRecordEvent = [](CUcontext, CUevent event) {
    EXPECT_TRUE(fake.captured.empty()) << "this ends captures in any mode";
    return fake.events.at(event) = nullptr, CUDA_SUCCESS;
  };
#endif
  real.cuStreamSynchronize = [](CUstream stream) {
    EXPECT_EQ(fake.polls_until_idle[nullptr], 0) << "this would wait";
    fake.synchronised.push_back(stream);
    return pool::synchronise(stream);
  };
  real.cuEventDestroy_v2 = [](CUevent event) {
    EXPECT_EQ(fake.events.erase(event), 1u);
    return CUDA_SUCCESS;
  };
  real.cuCtxPushCurrent_v2 = [](CUcontext context) {
    return fake.entered.push_back(context), CUDA_SUCCESS;
  };
  real.cuCtxPopCurrent_v2 = [](CUcontext*) { return fake.left++, CUDA_SUCCESS; };
  real.cuCtxSetCurrent = [](CUcontext context) {
    const std::lock_guard locked(fake.lock);
    return fake.made_current = context, CUDA_SUCCESS;
  };
  real.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode* mode) {
    return std::swap(capture_mode, *mode), CUDA_SUCCESS;
  };
  real.cuStreamIsCapturing = [](CUstream stream, CUstreamCaptureStatus* status) {
    *status = fake.captured.contains(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                             : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  };
  return real;
}

inline CUstream stream(std::uintptr_t number) { return reinterpret_cast<CUstream>(number); }

using RungName = ledger::Rung;

// A process of which a test says what is held and loaded. It counts the threads that it started.
class FakeProcess final : public QuietProcess {
 public:
  bool reaches_memory() noexcept override { return is_memory_reached; }
  bool holds_lock(std::string_view) noexcept override { return is_lock_held; }
  std::uint64_t host_room_bytes() noexcept override { return host_room; }
  bool start_thread(void* (*work)(void*), void* argument) noexcept override {
    if (!threads_can_start) return false;
    ++running;
    std::thread([work, argument] {
      work(argument);
      --running;
      running.notify_all();
    }).detach();
    return true;
  }
  static void wait_until_none_runs() {
    for (int now = running; now != 0; now = running) running.wait(now);
  }

  bool threads_can_start = true, is_memory_reached = false, is_lock_held = false;
  std::uint64_t host_room = UINT64_MAX;

 private:
  // Static: a thread that counts itself out may outlive the object.
  static inline std::atomic<int> running{0};
};

struct FailuresOfReclaimers final : serving::NoticeWriter {
  void write(serving::Notice, DeviceOrdinal, std::uint64_t, std::uint64_t) noexcept override {}
  void write(serving::ReclaimerFailure failure, std::string_view name,
             std::uint64_t) noexcept override {
    all.emplace_back(name, failure);
    while_written();
  }
  std::function<void()> while_written = [] {};
  std::vector<std::pair<std::string, serving::ReclaimerFailure>> all;
};

class LadderTest : public testing::Test {
 protected:
  LadderTest() {
    std::destroy_at(&fake);
    std::construct_at(&fake);
    capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    contexts.primary_retained(device, here);
  }
  ~LadderTest() override {
    EXPECT_TRUE(fake.events.empty()) << "each event is destroyed";
    EXPECT_EQ(fake.entered.size(), fake.left);
    EXPECT_EQ(pool::driver->errors, 0) << "calls that the driver would refuse";
    serving::serving_pools.store(nullptr);
    serving::answers_differ.store(false);
  }

  using Rungs = std::vector<std::pair<RungName, RungOutcome>>;
  // Climbs a new ladder. Returns the rungs that were climbed, with their outcomes.
  Rungs climb(const Settings& given, bool may_wait = true, bool on_device = true) {
    Ladder ladder(given, clock);
    return climb(ladder, may_wait, on_device);
  }
  Rungs climb(Ladder& ladder, bool may_wait = true, bool on_device = true) {
    return climb(ladder,
                 {.device = 1, .is_last_resort_due = may_wait, .spill_obstacle = spill_obstacle},
                 on_device);
  }
  [[gnu::noinline]] Rungs climb(Ladder& ladder, const Situation& situation, bool on_device = true) {
    const auto request = [&] {
      ++requests;
      return is_there() ? CUDA_SUCCESS : refusal;
    };
    const Request asked{.bytes = bytes, .device = on_device ? device : no_device, .asked = thing};
    const tracking::Caller caller{HookId{1}, __builtin_frame_address(0)};
    const tracking::Allocation asked_for{.kind = Kind::device, .bytes = bytes};
    const RefusedCall call{.parts = parts,
                           .pending = pending,
                           .caller = caller,
                           .asked_for = asked_for,
                           .here = {here, current_device},
                           .request = asked,
                           .ask_driver = request};
    TriedRungs tried(*writer, {.incident = incident, .first = is_first});
    const Rescued rescued = ladder.climb(call, situation, tried);
    Rungs all;
    for (const TriedRungs::Row& row : tried.rows()) {
      all.emplace_back(row.report.rung, row.report.outcome);
      if (!row.report.reclaimer.empty()) named.emplace_back(row.report.reclaimer);
    }
    left_out.clear();
    for (std::size_t i = 0; i < ledger::rung_count; ++i) {
      const auto rung = static_cast<RungName>(i);
      if (tried.left_out(rung) != LeftOut::none) left_out[rung] = tried.left_out(rung);
    }
    served = rescued.served;
    served_at = rescued.address;
    return all;
  }

  void begin_incident() {
    incident = writer->incidents.refused(GroupId{1}, {}, ThreadId{}, 0).incident;
  }
  // Returns the incident's last rung, as the ledger has it now.
  ledger::IncidentRungView last_rung() const {
    ledger::ReadError error;
    const auto reader = ledger::Reader::open(writer->bytes(), error).value();
    return reader.incident_rung(reader.rows(ledger::RegionId::incident_rungs) - 1).value();
  }

  // --- the pool of device memory
  void free_in_pool(std::uint64_t address) {
    pool::Arena* const arena = pools.parts().device.owner(address);
    const auto block = arena->retire(address);
    ASSERT_TRUE(block);
    arena->give(*block, 1);
  }
  // Fills the device with pages of the pool, in each of which one block is left.
  std::vector<std::uint64_t> leave_one_block_in_each_page() {
    constexpr std::uint64_t block_bytes = 64 << 10, in_a_page = pool::page / block_bytes;
    std::vector<std::uint64_t> left, others;
    for (int i = 0; i < 40 * int{in_a_page}; ++i) {
      const std::uint64_t address = pools.allocate(block_bytes);
      EXPECT_NE(address, 0u);
      if (address / block_bytes % in_a_page == address / pool::page % in_a_page)
        left.push_back(address);
      else
        others.push_back(address);
    }
    for (const std::uint64_t address : others) free_in_pool(address);
    pool::driver->free_bytes = 0;
    return left;
  }
  static bool has_device_a_page() { return pool::driver->free_bytes >= pool::page; }
  std::uint64_t meshed_pages() { return pools.parts().device.counts(device).meshed_pages; }

  ManualClock clock;
  FakeProcess process;
  FailuresOfReclaimers failures;
  ledger::Writer* const writer =
      ledger::Writer::create({.folders = {}, .hook_names = driver::row_names, .report_path = "/r"});
  const driver::RealDriver real = fake_functions();
  const DeviceOrdinal device{0};
  DeviceOrdinal current_device = device;  // of the requesting thread
  const ContextId here{0x700}, elsewhere{0x800};
  tracking::LiveContexts contexts;
  tracking::DeviceQueries queries{real, contexts};
  tracking::Captures captures;
  tracking::MemoryPools memory_pools;
  serving::Notices notices{failures};
  serving::ServingPools pools{{.pool = serving::PoolUse::from_start,
                               .mesh_pause_ns = 3'000'000,
                               .spill = {.most_host_bytes = 500 * pool::MiB}},
                              process,
                              *writer,
                              real,
                              queries,
                              contexts,
                              captures,
                              memory_pools,
                              notices,
                              clock};
  tracking::DeviceReadings readings{*writer, real, queries, memory_pools, &pools};
  tracking::CallSites sites{*writer, 0};
  const Parts parts{process,      *writer,  real,  queries, contexts, captures,
                    memory_pools, readings, sites, pools,   notices};
  PendingFrees pending{captures};
  std::function<bool()> is_there = [] { return false; };
  LeftOut spill_obstacle = LeftOut::turned_off;
  std::map<RungName, LeftOut> left_out;  // in the last rescue
  std::vector<std::string> named;        // names of the reclaimers that were called
  // The incident that counts the refusal; 0: none. It gets the rungs while the ladder is climbed if
  // `is_first` is true.
  IncidentId incident;
  bool is_first = true;
  bool served = false;
  std::uint64_t served_at = 0;  // Rescued::address
  int requests = 0;
  std::uint64_t bytes = 5000;                   // of the request
  ledger::Asked thing = ledger::Asked::memory;  // what the request asks for
  CUresult refusal = CUDA_ERROR_OUT_OF_MEMORY;
  const Settings settings{.enabled = true, .sync_timeout_ns = 200'000'000};
};

}  // namespace cuwarden::rescue
