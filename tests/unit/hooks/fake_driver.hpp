// A fake driver, which is a table of functions, and a session on it with a ledger in memory.
// Functions that cuwarden calls on its own change errno on purpose: hooks must restore it.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "runtime_hooks/hooks/call/hooks.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "tests/unit/manual_clock.hpp"
#include "tests/unit/quiet_shim.hpp"

namespace cuwarden::hooks {

// A node of a graph of the fake driver. Its handle (CUgraphNode) is its address.
struct FakeNode {
  // True for a node that allocates memory; false for one that frees it, or that is a child graph.
  bool allocates = false;
  // Address that the node allocates or frees.
  CUdeviceptr address = 0;
  std::size_t bytes = 0;  // bytes that the node allocates; 0 for other nodes
  // The child graph, if the node is one; otherwise null.
  CUgraph child = nullptr;
};

// The state of the fake driver: results of its functions, and counts of their calls. A test sets
// and reads it.
struct FakeDriver {
  // The current context of all threads.
  CUcontext current = reinterpret_cast<CUcontext>(0x1000);
  // The primary context of each device.
  CUcontext primary = reinterpret_cast<CUcontext>(0x1000);
  // The ordinary context that cuCtxFromGreenCtx gives for a green context.
  CUcontext green = reinterpret_cast<CUcontext>(0x2000);
  // True if the driver says that the primary context is active.
  bool primary_active = true;
  // The contexts that were made current by cuCtxPushCurrent_v2, in order.
  std::vector<CUcontext> pushed;
  // Address of the last allocation; the next one gets 4096 more.
  CUdeviceptr next_address = 0x10000;
  // The nodes of each graph.
  std::map<CUgraph, std::vector<FakeNode>> graphs;
  // Called inside each cuMemFree_v2; empty: nothing is called.
  std::function<void()> in_free;
  // Free and total bytes of each device: the results of cuMemGetInfo_v2.
  std::size_t free_bytes = 100, total_bytes = 1000;
  int readings = 0;          // number of calls of cuMemGetInfo_v2
  int questions = 0;         // number of calls of cuFuncGetAttribute
  int devices = 2;           // number of devices
  int device_questions = 0;  // number of calls of cuCtxGetDevice
  int current_device = 0;    // ordinal of the current context's device
  // The stream capture mode, one for all threads. cuThreadExchangeStreamCaptureMode changes it.
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  // Number of calls of cuMemGetInfo_v2 in a capture mode other than RELAXED. With a real driver
  // such a call would end a capture.
  int readings_not_relaxed = 0;
};
// The state of the fake driver; a fixture resets it for each test.
inline FakeDriver fake;

// Returns the table of the fake driver's functions. Functions that cuwarden calls on its own change
// errno on purpose: hooks must restore it.
inline driver::RealDriver fake_functions() {
  driver::RealDriver real;
  real.cuCtxGetCurrent = [](CUcontext* context) {
    errno = EIO;
    return *context = fake.current, CUDA_SUCCESS;
  };
  real.cuDeviceGetCount = [](int* count) { return *count = fake.devices, CUDA_SUCCESS; };
  real.cuCtxGetDevice = [](CUdevice* device) {
    errno = EIO;
    ++fake.device_questions;
    return *device = fake.current_device, CUDA_SUCCESS;
  };
  real.cuPointerGetAttribute = [](void* data, CUpointer_attribute, CUdeviceptr) {
    errno = EIO;
    return *static_cast<int*>(data) = 0, CUDA_SUCCESS;
  };
  real.cuMemGetAddressRange_v2 = [](CUdeviceptr* base, size_t* size, CUdeviceptr address) {
    errno = EIO;
    return *base = address, *size = 4096, CUDA_SUCCESS;
  };
  real.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus* status) {
    errno = EIO;
    return *status = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS;
  };
  real.cuDevicePrimaryCtxGetState = [](CUdevice, unsigned*, int* active) {
    errno = EIO;
    return *active = fake.primary_active, CUDA_SUCCESS;
  };
  real.cuMemGetInfo_v2 = [](size_t* free, size_t* total) {
    errno = EIO;
    ++fake.readings;
    fake.readings_not_relaxed += fake.capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED ? 1 : 0;
    return *free = fake.free_bytes, *total = fake.total_bytes, CUDA_SUCCESS;
  };
  real.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode* mode) {
    errno = EIO;
    return std::swap(fake.capture_mode, *mode), CUDA_SUCCESS;
  };
  real.cuCtxPushCurrent_v2 = [](CUcontext context) {
    return fake.pushed.push_back(context), CUDA_SUCCESS;
  };
  real.cuCtxPopCurrent_v2 = [](CUcontext*) { return CUDA_SUCCESS; };

  real.cuStreamBeginCapture = [](CUstream) { return CUDA_SUCCESS; };
  real.cuMemAlloc_v2 = [](CUdeviceptr* out, size_t) {
    return *out = fake.next_address += 0x1000, CUDA_SUCCESS;
  };
  real.cuMemAllocAsync = [](CUdeviceptr* out, size_t, CUstream) {
    return *out = fake.next_address += 0x1000, CUDA_SUCCESS;
  };
  real.cuMemPoolImportPointer = [](CUdeviceptr* out, CUmemoryPool, CUmemPoolPtrExportData*) {
    return *out = fake.next_address += 0x1000, CUDA_SUCCESS;
  };
  real.cuIpcOpenMemHandle_v2 = [](CUdeviceptr* out, CUipcMemHandle, unsigned) {
    return *out = fake.next_address += 0x1000, CUDA_SUCCESS;
  };
  real.cuMemFree_v2 = [](CUdeviceptr) {
    if (fake.in_free) fake.in_free();
    return CUDA_SUCCESS;
  };
  real.cuMemRelease = [](CUmemGenericAllocationHandle) { return CUDA_SUCCESS; };
  real.cuMemUnmap = [](CUdeviceptr, size_t) { return CUDA_SUCCESS; };
  real.cuMemMap = [](CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
                     unsigned long long) { return CUDA_SUCCESS; };
  real.cuMemCreate = [](CUmemGenericAllocationHandle* out, size_t, const CUmemAllocationProp*,
                        unsigned long long) { return *out = 77, CUDA_SUCCESS; };
#if CUDA_VERSION >= 12010
  real.cuMulticastCreate = [](CUmemGenericAllocationHandle* out, const CUmulticastObjectProp*) {
    return *out = 99, CUDA_SUCCESS;
  };
#endif

  real.cuDevicePrimaryCtxRetain = [](CUcontext* out, CUdevice) {
    return *out = fake.primary, CUDA_SUCCESS;
  };
  real.cuDevicePrimaryCtxRelease_v2 = [](CUdevice) { return CUDA_SUCCESS; };
  real.cuDevicePrimaryCtxReset_v2 = [](CUdevice) {
    return fake.primary_active = false, CUDA_SUCCESS;
  };
  real.cuCtxCreate_v2 = [](CUcontext* out, unsigned, CUdevice) {
    return *out = fake.current = reinterpret_cast<CUcontext>(0x3000), CUDA_SUCCESS;
  };
  real.cuCtxDestroy_v2 = [](CUcontext) { return CUDA_SUCCESS; };
#if CUDA_VERSION >= 12040
  real.cuGreenCtxCreate = [](CUgreenCtx* out, CUdevResourceDesc, CUdevice, unsigned) {
    return *out = reinterpret_cast<CUgreenCtx>(0x2222), CUDA_SUCCESS;
  };
  real.cuCtxFromGreenCtx = [](CUcontext* out, CUgreenCtx) {
    return *out = fake.green, CUDA_SUCCESS;
  };
  real.cuGreenCtxDestroy = [](CUgreenCtx) { return CUDA_SUCCESS; };
#endif

  // A node's handle is its address in the graph's list of nodes.
  real.cuGraphAddMemAllocNode = [](CUgraphNode*, CUgraph graph, const CUgraphNode*, size_t,
                                   CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
    parameters->dptr = fake.next_address += 0x1000;
    fake.graphs[graph].push_back({true, parameters->dptr, parameters->bytesize, nullptr});
    return CUDA_SUCCESS;
  };
  real.cuGraphGetNodes = [](CUgraph graph, CUgraphNode* out, size_t* count) {
    auto& nodes = fake.graphs[graph];
    *count = nodes.size();
    for (std::size_t i = 0; out != nullptr && i < nodes.size(); ++i)
      out[i] = reinterpret_cast<CUgraphNode>(&nodes[i]);
    return CUDA_SUCCESS;
  };
  real.cuGraphNodeGetType = [](CUgraphNode node, CUgraphNodeType* type) {
    const auto& fake_node = *reinterpret_cast<FakeNode*>(node);
    *type = fake_node.child != nullptr ? CU_GRAPH_NODE_TYPE_GRAPH
            : fake_node.allocates      ? CU_GRAPH_NODE_TYPE_MEM_ALLOC
                                       : CU_GRAPH_NODE_TYPE_MEM_FREE;
    return CUDA_SUCCESS;
  };
  real.cuGraphChildGraphNodeGetGraph = [](CUgraphNode node, CUgraph* out) {
    return *out = reinterpret_cast<FakeNode*>(node)->child, CUDA_SUCCESS;
  };
  real.cuGraphMemAllocNodeGetParams = [](CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* out) {
    *out = {};
    out->dptr = reinterpret_cast<FakeNode*>(node)->address;
    out->bytesize = reinterpret_cast<FakeNode*>(node)->bytes;
    return CUDA_SUCCESS;
  };
  real.cuGraphMemFreeNodeGetParams = [](CUgraphNode node, CUdeviceptr* out) {
    return *out = reinterpret_cast<FakeNode*>(node)->address, CUDA_SUCCESS;
  };
  real.cuGraphInstantiateWithFlags = [](CUgraphExec* out, CUgraph, unsigned long long) {
    return *out = reinterpret_cast<CUgraphExec>(0x5000), CUDA_SUCCESS;
  };
  real.cuGraphExecUpdate_v2 = [](CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo*) {
    return CUDA_SUCCESS;
  };
  real.cuGraphLaunch = [](CUgraphExec, CUstream) { return CUDA_SUCCESS; };
  return real;
}

// A session that records the calls of hooks on the fake driver, in a ledger in memory.
class HooksTest : public ::testing::Test {
 protected:
  // Resets the fake driver, the calling thread's state of hooked calls, and `noticed`.
  HooksTest() {
    fake = {};
    call_state = {};
    noticed.clear();
  }
  ~HooksTest() override { fake = {}; }

  // Calls the hook `body` with the arguments as the exported function does, on this driver and
  // session. Returns the hook's result. `row`: the hook's row in hooks.def.
  template <class Result, class... Parameters, class... Arguments>
  [[gnu::noinline]] static Result hooked_on(const driver::RealDriver& real, Session& session,
                                            driver::Row row,
                                            Result (*body)(HookedCall&, Parameters...),
                                            Arguments... arguments) {
    HookedCall call(real, &session, row);
    return body(call, arguments...);
  }
  // Calls the hook `body` on the test's own driver and session, and returns its result. `row`: the
  // hook's row in hooks.def.
  template <class Result, class... Parameters, class... Arguments>
  Result hooked(driver::Row row, Result (*body)(HookedCall&, Parameters...),
                Arguments... arguments) {
    return hooked_on(real, session, row, body, arguments...);
  }
  // Allocates `bytes` by the hook of cuMemAlloc_v2, and returns the address.
  CUdeviceptr allocate(std::size_t bytes = 512) {
    CUdeviceptr memory = 0;
    EXPECT_EQ(hooked(driver::Row::cuMemAlloc_v2, cuMemAlloc_v2, &memory, bytes), CUDA_SUCCESS);
    return memory;
  }

  // Returns a reader of the test's ledger.
  ledger::Reader reader() const {
    ledger::ReadError error;
    return ledger::Reader::open(writer->file.bytes(), error).value();
  }
  // Returns the records of live allocations, without those of objects for which the driver takes
  // memory (streams, modules, executable graphs, contexts).
  std::vector<ledger::RecordView> records() const {
    std::vector<ledger::RecordView> found;
    const ledger::Reader from = reader();
    for (std::uint64_t i = 1; i < from.rows(ledger::RegionId::records); ++i)
      if (const auto record = from.record(i); record && record->space < Space::graph_exec)
        found.push_back(*record);
    return found;
  }
  // Returns the number of frees that the ledger counts for memory without a record.
  std::uint64_t unknown_frees() const { return reader().process().unknown_frees; }

  // The test's ledger, in memory.
  ledger::Writer* const writer =
      ledger::Writer::create({.folders = {}, .hook_names = driver::row_names, .report_path = "/r"});
  // The functions of the fake driver.
  const driver::RealDriver real = fake_functions();
  // Reasons for which the ledger became incomplete, in the order in which the session reported
  // them.
  static inline std::vector<ledger::Reason> noticed;
  // A listener that notes the reasons for which the ledger becomes incomplete.
  struct Shim final : QuietShim {
    void ledger_is_incomplete(ledger::Reason reason) noexcept override {
      noticed.push_back(reason);
    }
  } shim;
  // The session's clock, which stands still: the session measures 0 ns for a reading of a device,
  // however slow the machine is.
  ManualClock still;
  // The session that records the hooks' calls.
  Session session{*writer, real, shim.around(still), {}};
};

}  // namespace cuwarden::hooks
