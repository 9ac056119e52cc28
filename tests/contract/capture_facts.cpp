// Calls that a thread makes while another thread captures a stream: which of them the driver
// refuses, and which end the capture. Rescues and cuwarden's pool rely on this.
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/contract/driver_test.hpp"

namespace cuwarden::contract {
namespace {

constexpr CUresult good = CUDA_SUCCESS, unsupported = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                   implicit = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                   no_memory = CUDA_ERROR_OUT_OF_MEMORY;

constexpr CUstreamCaptureMode global = CU_STREAM_CAPTURE_MODE_GLOBAL,
                              thread_local_ = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                              relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

class CaptureFacts : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    ASSERT_EQ(cuStreamCreate(&blocking, CU_STREAM_DEFAULT), good);
    ASSERT_EQ(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), good);
    ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), good);
    ASSERT_EQ(cuMemAlloc(&memory, kMiB), good);
    ASSERT_EQ(cuDeviceGetDefaultMemPool(&pool, device), good);
  }

  // Captures a stream made with `flags` in the mode `capture`. Meanwhile another thread, whose own
  // mode is `own`, makes the call. Returns the capture's result; `answer` is the call's.
  CUresult end_of_capture(unsigned flags, CUstreamCaptureMode capture, CUstreamCaptureMode own,
                          const std::function<CUresult()>& call, CUresult& answer) {
    EXPECT_EQ(cuStreamCreate(&captured, flags), good);
    EXPECT_EQ(cuEventCreate(&earlier, CU_EVENT_DISABLE_TIMING), good);
    EXPECT_EQ(cuEventRecord(earlier, captured), good);
    EXPECT_EQ(cuEventRecord(event, other), good);
    EXPECT_EQ(cuCtxSynchronize(), good);
    EXPECT_EQ(cuStreamBeginCapture(captured, capture), good);
    std::thread([&] {
      cuCtxSetCurrent(context);
      CUstreamCaptureMode mode = own;
      cuThreadExchangeStreamCaptureMode(&mode);
      answer = call();
    }).join();
    CUgraph graph = nullptr;
    const CUresult result = cuStreamEndCapture(captured, &graph);
    if (graph != nullptr) cuGraphDestroy(graph);
    cuEventDestroy(earlier);
    cuStreamDestroy(captured);
    return result;
  }

  struct Call {
    const char* name;
    std::function<CUresult()> make;
    CUresult answer = good;     // answer to the thread whose mode is RELAXED
    bool is_forbidden = false;  // true if a GLOBAL capture forbids the call to other threads
  };
  // Calls that no capture forbids to a thread whose own mode is RELAXED.
  std::vector<Call> harmless() {
    return {
        {"cuEventRecord", [&] { return cuEventRecord(event, other); }},
        {"cuEventQuery", [&] { return cuEventQuery(event); }, good, true},
        {"cuEventSynchronize", [&] { return cuEventSynchronize(event); }, good, true},
        {"cuEventQuery of the captured stream's event", [&] { return cuEventQuery(earlier); }, good,
         true},
        {"cuStreamSynchronize", [&] { return cuStreamSynchronize(other); }, good, true},
        {"cuStreamSynchronize of a blocking stream", [&] { return cuStreamSynchronize(blocking); },
         good, true},
        {"cuStreamQuery", [&] { return cuStreamQuery(other); }, good, true},
        {"cuMemPoolTrimTo", [&] { return cuMemPoolTrimTo(pool, 0); }, good, true},
        {"cuDeviceGraphMemTrim", [&] { return cuDeviceGraphMemTrim(device); }},
        {"cuMemAlloc and cuMemFree",
         [&] {
           CUdeviceptr block = 0;
           const CUresult allocated = cuMemAlloc(&block, kMiB);
           return allocated == good ? cuMemFree(block) : allocated;
         },
         good, true},
        {"cuMemAlloc of too much",
         [] {
           CUdeviceptr block = 0;
           return cuMemAlloc(&block, std::size_t{1} << 46);
         },
         no_memory, true},
        {"cuMemHostAlloc and cuMemFreeHost",
         [] {
           void* block = nullptr;
           const CUresult allocated = cuMemHostAlloc(&block, kMiB, 0);
           return allocated == good ? cuMemFreeHost(block) : allocated;
         },
         good, true},
        {"cuMemAllocAsync and cuMemFreeAsync",
         [&] {
           CUdeviceptr block = 0;
           const CUresult allocated = cuMemAllocAsync(&block, kMiB, other);
           return allocated == good ? cuMemFreeAsync(block, other) : allocated;
         },
         good, true},
        {"virtual memory", [&] { return map_and_unmap(); }},
        {"cuStreamIsCapturing",
         [&] {
           CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
           const CUresult result = cuStreamIsCapturing(captured, &status);
           EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
           return result;
         }},
        {"cuMemcpyDtoDAsync",
         [&] { return cuMemcpyDtoDAsync(memory, memory + kMiB / 2, kKiB, other); }},
    };
  }
  CUresult map_and_unmap() {
    constexpr std::size_t bytes = 2 * kMiB;
    CUmemAllocationProp where{};
    where.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    where.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, device},
                                 CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr address = 0;
    CUmemGenericAllocationHandle handle = 0;
    for (const CUresult result :
         {cuMemAddressReserve(&address, bytes, 0, 0, 0), cuMemCreate(&handle, bytes, &where, 0),
          cuMemMap(address, bytes, 0, handle, 0), cuMemSetAccess(address, bytes, &access, 1),
          cuMemUnmap(address, bytes), cuMemRelease(handle), cuMemAddressFree(address, bytes)})
      if (result != good) return result;
    return good;
  }

  CUstream blocking = nullptr, other = nullptr, captured = nullptr;
  CUevent event = nullptr, earlier = nullptr;
  CUdeviceptr memory = 0;
  CUmemoryPool pool = nullptr;
};

TEST_F(CaptureFacts, a_relaxed_thread_may_make_these_calls_during_any_capture) {
  for (const unsigned flags : {CU_STREAM_NON_BLOCKING, CU_STREAM_DEFAULT})
    for (const CUstreamCaptureMode capture : {global, thread_local_, relaxed})
      for (const Call& call : harmless()) {
        CUresult answer = good;
        EXPECT_EQ(end_of_capture(flags, capture, relaxed, call.make, answer), good) << call.name;
        EXPECT_EQ(answer, call.answer) << call.name << " in mode " << capture;
      }
}

TEST_F(CaptureFacts, a_global_capture_forbids_some_calls_to_other_threads_and_is_ended_by_them) {
  for (const Call& call : harmless()) {
    CUresult answer = good;
    const CUresult end = end_of_capture(CU_STREAM_NON_BLOCKING, global, global, call.make, answer);
    EXPECT_EQ(answer, call.is_forbidden ? unsupported : call.answer) << call.name;
    EXPECT_EQ(end == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, call.is_forbidden) << call.name;
  }
}

TEST_F(CaptureFacts, captures_in_other_modes_forbid_these_calls_to_no_other_thread) {
  for (const CUstreamCaptureMode capture : {thread_local_, relaxed})
    for (const Call& call : harmless()) {
      CUresult answer = good;
      EXPECT_EQ(end_of_capture(CU_STREAM_NON_BLOCKING, capture, global, call.make, answer), good)
          << call.name;
      EXPECT_EQ(answer, call.answer) << call.name;
    }
}

TEST_F(CaptureFacts, questions_to_a_whole_context_end_its_captures_in_any_mode) {
  const std::vector<Call> calls{
      {"cuCtxSynchronize", [] { return cuCtxSynchronize(); }},
      {"cuCtxRecordEvent", [&] { return cuCtxRecordEvent(context, event); }},
  };
  for (const CUstreamCaptureMode capture : {global, thread_local_, relaxed})
    for (const Call& call : calls) {
      CUresult answer = good;
      EXPECT_EQ(end_of_capture(CU_STREAM_NON_BLOCKING, capture, relaxed, call.make, answer),
                CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
          << call.name;
      EXPECT_EQ(answer, unsupported) << call.name;
    }
}

TEST_F(CaptureFacts, the_legacy_stream_ends_captures_of_blocking_streams_unless_only_asked_about) {
  const auto ask = [] {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return cuStreamIsCapturing(CU_STREAM_LEGACY, &status);
  };
  const std::vector<Call> calls{
      {"cuStreamQuery", [] { return cuStreamQuery(CU_STREAM_LEGACY); }},
      {"cuStreamSynchronize", [] { return cuStreamSynchronize(CU_STREAM_LEGACY); }},
      {"cuEventRecord", [&] { return cuEventRecord(event, CU_STREAM_LEGACY); }},
  };
  CUresult answer = good;
  for (const Call& call : calls) {
    EXPECT_EQ(end_of_capture(CU_STREAM_DEFAULT, relaxed, relaxed, call.make, answer),
              CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
        << call.name;
    EXPECT_EQ(answer, implicit) << call.name;
    EXPECT_EQ(end_of_capture(CU_STREAM_NON_BLOCKING, relaxed, relaxed, call.make, answer), good)
        << call.name;
    EXPECT_EQ(answer, good) << call.name;
  }
  EXPECT_EQ(end_of_capture(CU_STREAM_DEFAULT, relaxed, relaxed, ask, answer), good);
  EXPECT_EQ(answer, implicit);
  EXPECT_EQ(end_of_capture(CU_STREAM_NON_BLOCKING, relaxed, relaxed, ask, answer), good);
  EXPECT_EQ(answer, good);
}

}  // namespace
}  // namespace cuwarden::contract
