// A ladder on a fake driver, with all parts of the process that its rungs use. A test says how much
// memory there is, and which streams and contexts exist.
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
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/rescue/ladder.hpp"
#include "runtime_hooks/serving/pool_memory.hpp"
#include "tests/comes_about.hpp"
#include "tests/unit/manual_clock.hpp"
#include "tests/unit/pool/counting_driver.hpp"
#include "tests/unit/quiet_process.hpp"

namespace cuwarden::rescue {
// The state of the driver's streams, events, contexts and memory pools, which a test changes. The
// driver's memory is in pool::driver.
struct FakeDriver {
  // For each stream, the number of cuEventQuery calls for its events that still return NOT_READY;
  // negative: all of them do. The null stream means all streams of the context.
  std::map<CUstream, int> polls_until_idle;
  // The events that exist, with the stream in which each was recorded; null: in none.
  std::map<CUevent, CUstream> events;
  std::uintptr_t made = 0;  // number of events that were ever made
  // The streams in which events were recorded, and those that were synchronised, directly or by an
  // event; in order.
  std::vector<CUstream> recorded, synchronised;
  std::atomic<int> queries = 0;  // number of calls of cuEventQuery
  // The contexts that were made current by cuCtxPushCurrent_v2, in order.
  std::vector<CUcontext> entered;
  std::size_t left = 0;  // number of calls of cuCtxPopCurrent_v2
  // Result of cuEventQuery for an event that the device has reached.
  CUresult event_state = CUDA_SUCCESS;
  // Size of the device's memory; 0: the driver does not say.
  std::uint64_t total_bytes = 0;
  // Bytes that the driver's memory pools keep without allocations.
  std::uint64_t idle_in_memory_pools = 0;
  std::set<std::uint64_t> locked;  // addresses of allocated page-locked host memory
  std::mutex lock;                 // guards `made_current`
  // The context that was last made current by cuCtxSetCurrent, in whichever thread.
  CUcontext made_current = nullptr;
  std::set<CUstream> captured;  // the streams that are captured into graphs
};
// The state of the fake driver; the fixture makes it anew for each test.
inline FakeDriver fake;
// Stream capture mode of the calling thread.
inline thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

// Fails the test if a capture is in progress and the calling thread's capture mode is not RELAXED.
// Called by each function of the fake driver that ends captures in a real one.
inline void may_end_captures() {
  EXPECT_TRUE(fake.captured.empty() || capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED);
}

// Makes a new pool::driver, and returns the table of the fake driver's functions.
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
  real.cuCtxSynchronize = [] {
    EXPECT_TRUE(fake.captured.empty()) << "this ends captures in any mode";
    return CUDA_SUCCESS;
  };
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

// Returns the handle of a stream. `number`: distinguishes the stream from others; 0: the null
// stream.
inline CUstream stream(std::uintptr_t number) { return reinterpret_cast<CUstream>(number); }

// The name of a rung: one of the ordered attempts to serve a refused request.
using RungName = ledger::Rung;

// A process of which a test says which locks are held and which libraries are loaded. It counts the
// threads that it started.
class FakeProcess final : public QuietProcess {
 public:
  // Returns `is_memory_reached`, which the test sets.
  bool reaches_memory() noexcept override { return is_memory_reached; }
  // Returns `is_lock_held`, which the test sets, for a lock of any name.
  bool holds_lock(std::string_view) noexcept override { return is_lock_held; }
  // Returns `host_left`, which the test sets.
  std::uint64_t host_memory_left() noexcept override { return host_left; }
  // Starts a thread that calls work(argument), and counts it while it runs. Returns false, with
  // nothing started, if the test has set `threads_can_start` to false.
  bool start_thread(void* (*work)(void*), void* argument) noexcept override {
    if (!threads_can_start) return false;
    ++running;
    std::thread([work, argument] {
      work(argument);
      --running;
    }).detach();
    return true;
  }
  // Waits until all threads that start_thread() has started have ended.
  static void wait_until_none_runs() {
    wait_until("the threads have ended", [] { return running == 0; });
  }

  // Results of start_thread(), reaches_memory() and holds_lock().
  bool threads_can_start = true, is_memory_reached = false, is_lock_held = false;
  // Bytes of host memory that may be taken for spilled memory.
  std::uint64_t host_left = UINT64_MAX;

 private:
  // Number of threads of start_thread() that still run. Static, since such a thread may outlive the
  // object.
  static inline std::atomic<int> running{0};
};

// Collects the messages about failures of reclaimers (callbacks that empty a cache); drops other
// messages.
struct FailuresOfReclaimers final : serving::NoticeWriter {
  // Drops the message.
  void write(serving::Notice, DeviceOrdinal, std::uint64_t, std::uint64_t) noexcept override {}
  // Adds the failure to `all`, and calls while_written(). `name`: the reclaimer's.
  void write(serving::ReclaimerFailure failure, std::string_view name,
             std::uint64_t) noexcept override {
    all.emplace_back(name, failure);
    while_written();
  }
  // Called in each write() of a failure; does nothing unless a test sets it.
  std::function<void()> while_written = [] {};
  // The failures of which messages were written, with the reclaimers' names, in order.
  std::vector<std::pair<std::string, serving::ReclaimerFailure>> all;
};

// A ladder (the ordered attempts, called rungs, to serve a refused request) on a fake driver, with
// all parts of the process that rungs use.
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

  // The rungs that were tried for a request, with their outcomes, in order.
  using Rungs = std::vector<std::pair<RungName, RungOutcome>>;
  // Tries the rungs of a new ladder with these settings for a refused request. `may_wait`: true if
  // rungs with a cost to the program may be tried. `on_device`: true if the request is for device
  // memory, false for host memory. Returns the rungs that were tried.
  Rungs climb(const Settings& given, bool may_wait = true, bool on_device = true) {
    Ladder ladder(given, clock, reclaimers);
    return climb(ladder, may_wait, on_device);
  }
  // Does the work of climb(Settings) with a ladder that may have been climbed before.
  Rungs climb(Ladder& ladder, bool may_wait = true, bool on_device = true) {
    return climb(ladder, {.is_last_resort_due = may_wait, .spill_obstacle = spill_obstacle},
                 on_device);
  }
  // Returns the refused request. `on_device`: true for device memory, false for host memory.
  Request request_of(bool on_device = true) const {
    return {.bytes = bytes, .device = on_device ? asked_device : no_device, .asked = thing};
  }
  // Returns true if rungs should be tried for the refused request under these conditions.
  bool is_worth_climbing(Ladder& ladder, const RescueConditions& conditions) const {
    return ladder.is_worth_climbing(request_of(), conditions);
  }
  // Tries the ladder's rungs for a refused request under these conditions. `on_device`: true if the
  // request is for device memory, false for host memory. Returns the rungs that were tried; other
  // results are in the members `served`, `served_at`, `left_out` and `named`.
  [[gnu::noinline]] Rungs climb(Ladder& ladder, const RescueConditions& conditions,
                                bool on_device = true) {
    const auto request = [&] {
      ++requests;
      return is_there() ? CUDA_SUCCESS : refusal;
    };
    const tracking::Caller caller{HookId{1}, __builtin_frame_address(0)};
    const tracking::Allocation asked_for{.kind = Kind::device, .bytes = bytes};
    const RefusedCall call{.parts = parts,
                           .pending = pending,
                           .caller = caller,
                           .asked_for = asked_for,
                           .here = {here, current_device},
                           .request = request_of(on_device),
                           .ask_driver = request};
    TriedRungs tried(*writer, {.incident = incident, .first = is_first});
    const Rescued rescued = ladder.climb(call, conditions, tried);
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

  // Begins an incident in the ledger. Later calls of climb() note the rungs that they try for this
  // incident.
  void begin_incident() {
    incident = writer->incidents.refused(GroupId{1}, {}, ThreadId{}, 0).incident;
  }
  // Returns the last row of a rung in the ledger, as it is now.
  ledger::IncidentRungView last_rung() const {
    ledger::ReadError error;
    const auto reader = ledger::Reader::open(writer->file.bytes(), error).value();
    return reader.incident_rung(reader.rows(ledger::RegionId::incident_rungs) - 1).value();
  }

  // --- the pool of device memory

  // Frees the block of cuwarden's pool at this address, as the program does.
  void free_in_pool(std::uint64_t address) {
    ASSERT_EQ(serving::free_of_pool(real, address), CUDA_SUCCESS);
  }
  // Fills 40 pages of the pool with blocks, and frees all but one in each page. Leaves no free
  // memory of the device. Returns the addresses of the blocks that are left.
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
  // Returns true if a page (2 MiB) of the device is free.
  static bool has_device_a_page() { return pool::driver->free_bytes >= pool::page; }
  // Returns the number of the pool's pages that meshing has freed so far.
  std::uint64_t meshed_pages() { return pools.counts(device).meshed_pages; }

  ManualClock clock;              // the clock of all waits
  FakeProcess process;            // says what is loaded, and starts threads
  FailuresOfReclaimers failures;  // collects messages about reclaimers
  // The test's ledger, in memory.
  ledger::Writer* const writer =
      ledger::Writer::create({.folders = {}, .hook_names = driver::row_names, .report_path = "/r"});
  const driver::RealDriver real = fake_functions();  // the functions of the fake driver
  const DeviceOrdinal device{0};                     // the device of the context `here`
  DeviceOrdinal asked_device = device;               // the device of requests for device memory
  DeviceOrdinal current_device = device;  // device of the requesting thread's current context
  // The requesting thread's current context (`here`), and another one.
  const ContextId here{0x700}, elsewhere{0x800};
  tracking::LiveContexts contexts;  // the contexts that have not ended: `here` at first
  tracking::DeviceQueries queries{real, contexts};  // asks the fake driver for contexts and devices
  tracking::Captures captures;                      // stream captures in progress
  tracking::MemoryPools memory_pools;               // the driver's memory pools
  serving::Notices notices{failures};               // messages to the user
  // cuwarden's own pools: they serve from the start, mesh in pauses of 3 ms at most, and spill up
  // to 500 MiB.
  const Settings settings_of_pools{.pool = PoolMode::on, .mesh_pause_ns = 3'000'000};
  const pool::SpillSettings spill_limits{.most_host_bytes = 500 * pool::MiB};
  serving::ServingPools pools{settings_of_pools, spill_limits, process,      *writer, real, queries,
                              contexts,          captures,     memory_pools, notices, clock};
  // Reads how full the device is.
  tracking::DeviceReadings readings{*writer, real, queries, memory_pools, &pools};
  tracking::CallSites sites{*writer, 0};  // walks call stacks: none, since their depth is 0
  // References to all that rungs use.
  const Parts parts{process,      *writer,  real,  queries, contexts, captures,
                    memory_pools, readings, sites, pools,   notices};
  PendingFrees pending{captures};  // streams with frees that were not synchronised
  // Called at each repetition of the driver's call. Returns true if the call is to succeed, because
  // there is enough memory.
  std::function<bool()> is_there = [] { return false; };
  // The reason for which host memory cannot serve the request; none if it can.
  LeftOut spill_obstacle = LeftOut::turned_off;
  // The rungs that were left out in the last rescue, with the reasons.
  std::map<RungName, LeftOut> left_out;
  // Names of the reclaimers that all rescues have called, in order.
  std::vector<std::string> named;
  // The incident to which the refusal belongs; 0: none. The ledger gets its rungs while they are
  // tried if `is_first` is true.
  IncidentId incident;
  bool is_first = true;  // true if the refusal is the first one of its incident
  bool served = false;   // true if the last rescue has served the request
  // Address of the memory that has served the last request (Rescued::address); 0: none.
  std::uint64_t served_at = 0;
  int requests = 0;            // number of times that rungs have repeated the driver's call
  std::uint64_t bytes = 5000;  // size of the request
  ledger::Asked thing = ledger::Asked::memory;  // the thing that the request asks for
  // Error with which the driver refuses each repetition while the memory is not there.
  CUresult refusal = CUDA_ERROR_OUT_OF_MEMORY;
  // The reclaimers that climb(Settings) gives its ladder; null: none can be registered.
  Reclaimers* reclaimers = nullptr;
  // Settings of a ladder that waits for the device up to 200 ms, without rungs that cost the
  // program something.
  const Settings settings{.pool = PoolMode::rescue, .sync_timeout_ns = 200'000'000};
};

}  // namespace cuwarden::rescue
