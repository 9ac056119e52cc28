// Calls that documents of CUDA let fail for lack of memory, but that a full device never refuses.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "tests/contract/full_device.hpp"

namespace cuwarden::contract {
namespace {

constexpr CUresult good = CUDA_SUCCESS;
// Calls of each function: more than fit into memory that the driver has taken before.
constexpr int times = 100;

class NeverRefusedFacts : public FullDeviceTest {
 protected:
  void fill_device() { fill_but_for(2 * kMiB); }
  CUmemPoolProps pool_for(CUmemAllocationHandleType handles) const {
    CUmemPoolProps wanted{};
    wanted.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    wanted.handleTypes = handles;
    return wanted;
  }
};

// The driver has host memory for these, if the device is full.
TEST_F(NeverRefusedFacts, events_mapped_ranges_and_page_locked_memory) {
  CUmemAllocationProp kind{};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  const CUmemAccessDesc access{kind.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle page{};
  ASSERT_EQ(cuMemCreate(&page, 2 * kMiB, &kind, 0), good);
  CUdeviceptr range = 0;
  const std::size_t stride = 512 * kMiB, mappings = 100;
  ASSERT_EQ(cuMemAddressReserve(&range, stride * mappings, 0, 0, 0), good);
  fill_but_for(2 * kMiB);
  for (int i = 0; i < 1000; ++i) {
    CUevent event = nullptr;
    ASSERT_EQ(cuEventCreate(&event, 0), good);
    ASSERT_EQ(cuEventRecord(event, nullptr), good);
  }
  // Each of these needs page tables of its own.
  for (std::size_t i = 0; i < mappings; ++i) {
    ASSERT_EQ(cuMemMap(range + i * stride, 2 * kMiB, 0, page, 0), good);
    ASSERT_EQ(cuMemSetAccess(range + i * stride, 2 * kMiB, &access, 1), good);
  }
  void* locked = nullptr;
  EXPECT_EQ(cuMemHostAlloc(&locked, 64 * kMiB, 0), good);
  EXPECT_EQ(cuCtxSynchronize(), good);
}

TEST_F(NeverRefusedFacts, access_to_a_peer) {
  int count = 0;
  ASSERT_EQ(cuDeviceGetCount(&count), good);
  if (count < 2) GTEST_SKIP() << "needs two devices";
  CUdevice other{};
  CUcontext own = nullptr, others = nullptr;
  ASSERT_EQ(cuDeviceGet(&other, 1), good);
  ASSERT_EQ(cuCtxGetCurrent(&own), good);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&others, other), good);
  fill_but_for(2 * kMiB);
  EXPECT_EQ(cuCtxEnablePeerAccess(others, 0), good);
  ASSERT_EQ(cuCtxSetCurrent(others), good);
  EXPECT_EQ(cuCtxEnablePeerAccess(own, 0), good);
  EXPECT_EQ(cuCtxDisablePeerAccess(own), good);
  ASSERT_EQ(cuCtxSetCurrent(own), good);
  EXPECT_EQ(cuCtxDisablePeerAccess(others), good);
  EXPECT_EQ(cuDevicePrimaryCtxRelease(other), good);
}

TEST_F(NeverRefusedFacts, reservations_of_addresses) {
  fill_device();
  for (int i = 0; i < times; ++i) {
    CUdeviceptr range = 0;
    ASSERT_EQ(cuMemAddressReserve(&range, 512 * kMiB, 0, 0, 0), good);
  }
}

TEST_F(NeverRefusedFacts, questions_about_streams) {
  std::vector<CUstream> streams(10);
  for (CUstream& stream : streams) ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), good);
  streams.push_back(nullptr);
  fill_device();
  for (const CUstream stream : streams) {
    int priority = 0;
    unsigned flags = 0;
    CUdevice found = -1;
    EXPECT_EQ(cuStreamGetPriority(stream, &priority), good);
    EXPECT_EQ(cuStreamGetFlags(stream, &flags), good);
    EXPECT_EQ(cuStreamGetDevice(stream, &found), good);
    EXPECT_EQ(found, device);
  }
}

TEST_F(NeverRefusedFacts, handles_by_which_other_processes_open_memory_and_events) {
  std::vector<CUdeviceptr> blocks(20);
  std::vector<CUevent> events(20);
  for (CUdeviceptr& block : blocks) ASSERT_EQ(cuMemAlloc(&block, 4 * kMiB), good);
  for (CUevent& event : events)
    ASSERT_EQ(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING), good);
  fill_device();
  for (const CUdeviceptr block : blocks) {
    CUipcMemHandle handle{};
    EXPECT_EQ(cuIpcGetMemHandle(&handle, block), good);
  }
  for (const CUevent event : events) {
    CUipcEventHandle handle{};
    EXPECT_EQ(cuIpcGetEventHandle(&handle, event), good);
  }
}

TEST_F(NeverRefusedFacts, the_end_of_registered_memory) {
  using Freed = std::unique_ptr<void, decltype(&std::free)>;
  std::vector<Freed> buffers;
  for (int i = 0; i < times; ++i) {
    buffers.emplace_back(std::aligned_alloc(64 * kKiB, kMiB), &std::free);
    ASSERT_EQ(cuMemHostRegister(buffers.back().get(), kMiB, 0), good);
  }
  fill_device();
  for (const Freed& buffer : buffers) EXPECT_EQ(cuMemHostUnregister(buffer.get()), good);
}

// The driver refuses the 467th memory pool, on an empty device, too.
TEST_F(NeverRefusedFacts, memory_pools) {
  const CUmemPoolProps wanted = pool_for(CU_MEM_HANDLE_TYPE_NONE);
  fill_device();
  for (int i = 0; i < times; ++i) {
    CUmemoryPool pool = nullptr;
    ASSERT_EQ(cuMemPoolCreate(&pool, &wanted), good);
  }
}

TEST_F(NeverRefusedFacts, handles_by_which_other_processes_open_memory_pools) {
  if (simulated) GTEST_SKIP() << "the simulated GPU shares no memory pools";
  const CUmemPoolProps wanted = pool_for(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CUmemoryPool pool = nullptr;
  CUdeviceptr block = 0;
  ASSERT_EQ(cuMemPoolCreate(&pool, &wanted), good);
  ASSERT_EQ(cuMemAllocFromPoolAsync(&block, 4 * kMiB, pool, nullptr), good);
  ASSERT_EQ(cuStreamSynchronize(nullptr), good);
  fill_device();
  for (int i = 0; i < times; ++i) {
    int descriptor = -1;
    ASSERT_EQ(cuMemPoolExportToShareableHandle(&descriptor, pool,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
              good);
    EXPECT_EQ(close(descriptor), 0);
    CUmemPoolPtrExportData data{};
    EXPECT_EQ(cuMemPoolExportPointer(&data, block), good);
  }
}

TEST_F(NeverRefusedFacts, graphs_and_their_nodes) {
  fill_device();
  for (int i = 0; i < times; ++i) {
    CUgraph graph = nullptr;
    ASSERT_EQ(cuGraphCreate(&graph, 0), good);
    ASSERT_EQ(kernels::add_launches(graph, plain, out, 100), good);
  }
}

TEST_F(NeverRefusedFacts, copies_of_graphs) {
  if (simulated) GTEST_SKIP() << "the simulated GPU copies no graphs";
  CUgraph graph = nullptr;
  ASSERT_EQ(cuGraphCreate(&graph, 0), good);
  ASSERT_EQ(kernels::add_launches(graph, plain, out, 100), good);
  fill_device();
  for (int i = 0; i < times; ++i) {
    CUgraph copy = nullptr;
    ASSERT_EQ(cuGraphClone(&copy, graph), good);
  }
}

// Nodes of graphs that are not executable yet.
TEST_F(NeverRefusedFacts, new_parameters_of_nodes) {
  if (simulated) GTEST_SKIP() << "the simulated GPU changes no nodes";
  CUgraph graph = nullptr;
  ASSERT_EQ(cuGraphCreate(&graph, 0), good);
  unsigned at = 4;
  void* arguments[] = {&out, &at};
  CUDA_KERNEL_NODE_PARAMS of_launch{};
  of_launch.func = plain;
  of_launch.gridDimX = of_launch.gridDimY = of_launch.gridDimZ = 1;
  of_launch.blockDimX = of_launch.blockDimY = of_launch.blockDimZ = 1;
  of_launch.kernelParams = arguments;
  CUstreamBatchMemOpParams write{};
  write.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  write.writeValue.address = out;
  CUDA_BATCH_MEM_OP_NODE_PARAMS of_writes{};
  of_writes.ctx = context;
  of_writes.count = 1;
  of_writes.paramArray = &write;
  CUevent event = nullptr, other = nullptr;
  CUgraphNode launches = nullptr, records = nullptr, waits = nullptr, writes = nullptr;
  ASSERT_EQ(cuEventCreate(&event, 0), good);
  ASSERT_EQ(cuEventCreate(&other, 0), good);
  ASSERT_EQ(cuGraphAddKernelNode(&launches, graph, nullptr, 0, &of_launch), good);
  ASSERT_EQ(cuGraphAddEventRecordNode(&records, graph, nullptr, 0, event), good);
  ASSERT_EQ(cuGraphAddEventWaitNode(&waits, graph, nullptr, 0, event), good);
  ASSERT_EQ(cuGraphAddBatchMemOpNode(&writes, graph, nullptr, 0, &of_writes), good);
  fill_device();
  for (int i = 0; i < times; ++i) {
    EXPECT_EQ(cuGraphKernelNodeSetParams(launches, &of_launch), good);
    EXPECT_EQ(cuGraphEventRecordNodeSetEvent(records, other), good);
    EXPECT_EQ(cuGraphEventWaitNodeSetEvent(waits, other), good);
    EXPECT_EQ(cuGraphBatchMemOpNodeSetParams(writes, &of_writes), good);
  }
}

TEST_F(NeverRefusedFacts, the_linking_of_code) {
  if (simulated) GTEST_SKIP() << "the simulated GPU links no code";
  const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                     ("never_refused_facts." + std::to_string(getpid()) + ".ptx");
  std::ofstream(file) << kernels::deep_code;
  fill_device();
  for (int i = 0; i < 5; ++i) {
    CUlinkState linker = nullptr;
    std::string code = kernels::plain_code;
    void* made = nullptr;
    std::size_t bytes = 0;
    ASSERT_EQ(cuLinkCreate(0, nullptr, nullptr, &linker), good);
    EXPECT_EQ(cuLinkAddData(linker, CU_JIT_INPUT_PTX, code.data(), code.size() + 1, "plain", 0,
                            nullptr, nullptr),
              good);
    EXPECT_EQ(cuLinkAddFile(linker, CU_JIT_INPUT_PTX, file.c_str(), 0, nullptr, nullptr), good);
    EXPECT_EQ(cuLinkComplete(linker, &made, &bytes), good);
    EXPECT_EQ(cuLinkDestroy(linker), good);
  }
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace cuwarden::contract
