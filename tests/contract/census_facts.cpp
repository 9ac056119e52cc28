// Objects and calls of the driver for which cuwarden measures no device memory: they take none, or
// a few MiB at most. Each test makes many of one kind, and prints what they took of the device and
// of the caller's time. The objects stay until the last test, which checks all kinds together.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "tests/contract/driver_test.hpp"
#include "tests/kernels_in_ptx.hpp"

namespace cuwarden::contract {
namespace {

const std::string kCode = kernels::head + kernels::text_of_idle("small");

constexpr std::size_t kBlock = kMiB;  // bytes of the block of device memory that calls name
constexpr std::size_t kMostOfAKind = 4 * kMiB;  // device memory that a kind may take in all
constexpr std::size_t kMostOfAll = 8 * kMiB;    // device memory that all kinds may take in all

// Gives all tests one context on device 0, which ends with them, and what the calls need in it.
class CensusFacts : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    CUctxCreateParams parameters{};
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDeviceGet(&device, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxCreate(&context, &parameters, 0, device), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleLoadData(&module, kCode.c_str()), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&kernel, module, "small"), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&block, kBlock), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CUDA_ARRAY3D_DESCRIPTOR shape{};
    shape.Width = shape.Height = 64;
    shape.Format = CU_AD_FORMAT_FLOAT;
    shape.NumChannels = 1;
    shape.Flags = CUDA_ARRAY3D_SURFACE_LDST;
    ASSERT_EQ(cuArray3DCreate(&array, &shape), CUDA_SUCCESS);
    ASSERT_EQ(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD8(block, 0, kBlock), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphInstantiate(&exec, graph_of_fills(10), 0), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    free_at_start = free_bytes();
  }
  static void TearDownTestSuite() {
    if (context == nullptr) return;
    EXPECT_EQ(cuCtxDestroy(context), CUDA_SUCCESS);
  }
  void SetUp() override { ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS); }

  static long long taken_since(std::size_t free_before) {
    return static_cast<long long>(free_before) - static_cast<long long>(free_bytes());
  }

  // Calls call(i) for each i below `count`; fails the test at the first one that the driver
  // refuses. Prints how much device memory the calls took, and how long one lasted on average.
  // Fails the test if they took more than kMostOfAKind.
  template <typename Call>
  static void take(const char* kind, int count, Call call) {
    const std::size_t before = free_bytes();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) ASSERT_EQ(call(i), CUDA_SUCCESS) << kind << " " << i;
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    const long long taken = taken_since(before);
    std::printf("%s: %d calls, %lld bytes, %.2f us a call\n", kind, count, taken,
                time.count() / count);
    EXPECT_LE(taken, static_cast<long long>(kMostOfAKind)) << kind;
  }

  // Makes `count` events with these flags and records each once.
  static void take_events(const char* kind, int count, unsigned flags) {
    take(kind, count, [=](int) {
      CUevent event = nullptr;
      const CUresult made = cuEventCreate(&event, flags);
      return made != CUDA_SUCCESS ? made : cuEventRecord(event, stream);
    });
  }

  // Returns a graph with `count` nodes that fill a word of the block, each after the one before.
  // Sets last_fill to the last one.
  static CUgraph graph_of_fills(int count) {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    for (int i = 0; i < count; ++i) {
      const CUgraphNode before = last_fill;
      const CUDA_MEMSET_NODE_PARAMS fill = filling(i);
      EXPECT_EQ(cuGraphAddMemsetNode(&last_fill, graph, &before, i > 0 ? 1 : 0, &fill, context),
                CUDA_SUCCESS);
    }
    return graph;
  }
  // Returns the parameters of a node that fills a word of the block with `value`.
  static CUDA_MEMSET_NODE_PARAMS filling(int value) {
    CUDA_MEMSET_NODE_PARAMS fill{};
    fill.dst = block;
    fill.elementSize = 4;
    fill.value = static_cast<unsigned>(value);
    fill.width = fill.height = 1;
    return fill;
  }

  static inline CUdevice device = 0;
  static inline CUcontext context = nullptr;
  static inline CUmodule module = nullptr;
  static inline CUfunction kernel = nullptr;
  static inline CUdeviceptr block = 0;
  static inline CUarray array = nullptr;
  static inline CUstream stream = nullptr;
  static inline CUgraphExec exec = nullptr;  // An executable graph of fills, launched once.
  static inline CUgraphNode last_fill = nullptr;
  // Free bytes of the device before the tests.
  static inline std::size_t free_at_start = 0;
};

TEST_F(CensusFacts, events) {
  take_events("events with timing", 5'000, CU_EVENT_DEFAULT);
  take_events("events without timing", 5'000, CU_EVENT_DISABLE_TIMING);
}

TEST_F(CensusFacts, ipc_event_handles) {
  take("IPC event handles", 1'000, [](int) {
    CUevent event = nullptr;
    CUipcEventHandle handle{};
    const CUresult made = cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
    return made != CUDA_SUCCESS ? made : cuIpcGetEventHandle(&handle, event);
  });
}

// The driver refuses the 57,344th texture object on a full device.
TEST_F(CensusFacts, texture_objects) {
  CUDA_RESOURCE_DESC of_array{}, of_block{};
  of_array.resType = CU_RESOURCE_TYPE_ARRAY;
  of_array.res.array.hArray = array;
  of_block.resType = CU_RESOURCE_TYPE_LINEAR;
  of_block.res.linear.devPtr = block;
  of_block.res.linear.format = CU_AD_FORMAT_FLOAT;
  of_block.res.linear.numChannels = 1;
  of_block.res.linear.sizeInBytes = kBlock;
  const CUDA_TEXTURE_DESC reading{};
  CUtexObject texture = 0;
  take("texture objects of an array", 2'500,
       [&](int) { return cuTexObjectCreate(&texture, &of_array, &reading, nullptr); });
  take("texture objects of linear memory", 2'500,
       [&](int) { return cuTexObjectCreate(&texture, &of_block, &reading, nullptr); });
}

TEST_F(CensusFacts, surface_objects) {
  CUDA_RESOURCE_DESC of_array{};
  of_array.resType = CU_RESOURCE_TYPE_ARRAY;
  of_array.res.array.hArray = array;
  CUsurfObject surface = 0;
  take("surface objects of an array", 5'000,
       [&](int) { return cuSurfObjectCreate(&surface, &of_array); });
}

TEST_F(CensusFacts, copies_of_pageable_memory) {
  const auto memory = std::make_unique<unsigned char[]>(kBlock);
  take("copies from pageable memory", 1'000,
       [&](int) { return cuMemcpyHtoD(block, memory.get(), kBlock); });
  take("copies to pageable memory", 1'000,
       [&](int) { return cuMemcpyDtoH(memory.get(), block, kBlock); });
}

TEST_F(CensusFacts, waits_for_events) {
  CUevent event = nullptr;
  ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  take("waits of a stream for an event", 1'000, [&](int) {
    const CUresult recorded = cuEventRecord(event, CU_STREAM_LEGACY);
    return recorded != CUDA_SUCCESS ? recorded : cuStreamWaitEvent(stream, event, 0);
  });
}

TEST_F(CensusFacts, changes_of_an_executable_graph) {
  take("changes of a node of an executable graph", 1'000, [&](int i) {
    const CUDA_MEMSET_NODE_PARAMS fill = filling(i);
    return cuGraphExecMemsetNodeSetParams(exec, last_fill, &fill, context);
  });
  take("changes of a node, and launches of its graph", 1'000, [&](int i) {
    const CUDA_MEMSET_NODE_PARAMS fill = filling(i);
    const CUresult set = cuGraphExecMemsetNodeSetParams(exec, last_fill, &fill, context);
    return set != CUDA_SUCCESS ? set : cuGraphLaunch(exec, stream);
  });
  unsigned word = 0;
  ASSERT_EQ(cuMemcpyDtoH(&word, block, sizeof word), CUDA_SUCCESS);
  EXPECT_EQ(word, 999U) << "the last change reached the executable graph";
}

TEST_F(CensusFacts, graphs_that_are_not_instantiated) {
  take("graphs of 1,000 nodes", 10, [](int) {
    CUgraph graph = nullptr;
    CUresult result = cuGraphCreate(&graph, 0);
    CUgraphNode node = nullptr;
    for (int i = 0; i < 1'000 && result == CUDA_SUCCESS; ++i) {
      const CUgraphNode before = node;
      result = cuGraphAddEmptyNode(&node, graph, &before, i > 0 ? 1 : 0);
    }
    return result;
  });
}

TEST_F(CensusFacts, questions_about_pointers_and_occupancy) {
  take("questions about a pointer", 10'000, [](int) {
    CUcontext owner = nullptr;
    return cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, block);
  });
  take("questions about occupancy", 10'000, [](int) {
    int blocks = 0;
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 128, 0);
  });
  take("questions for the best size of a block", 1'000, [](int) {
    int blocks = 0, threads = 0;
    return cuOccupancyMaxPotentialBlockSize(&blocks, &threads, kernel, nullptr, 0, 0);
  });
}

TEST_F(CensusFacts, registrations_of_host_memory) {
  constexpr std::size_t size = 64 * kKiB;
  const std::unique_ptr<unsigned char, void (*)(void*)> memory(
      static_cast<unsigned char*>(std::aligned_alloc(4 * kKiB, size)), std::free);
  take("registrations of 64 KiB that end", 1'000, [&](int) {
    const CUresult registered = cuMemHostRegister(memory.get(), size, 0);
    return registered != CUDA_SUCCESS ? registered : cuMemHostUnregister(memory.get());
  });
}

TEST_F(CensusFacts, reservations_of_addresses) {
  take("reservations of 1 GiB of addresses", 100, [](int) {
    CUdeviceptr start = 0;
    return cuMemAddressReserve(&start, kGiB, 0, 0, 0);
  });
}

TEST_F(CensusFacts, access_to_the_memory_of_a_peer) {
  int count = 0, is_possible = 0;
  ASSERT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
  if (count < 2) GTEST_SKIP() << "needs two devices";
  CUdevice second = 0;
  ASSERT_EQ(cuDeviceGet(&second, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuDeviceCanAccessPeer(&is_possible, device, second), CUDA_SUCCESS);
  if (is_possible == 0) GTEST_SKIP() << "needs two devices with access to each other";
  CUctxCreateParams parameters{};
  CUcontext peer = nullptr;
  ASSERT_EQ(cuCtxCreate(&peer, &parameters, 0, second), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  take("grants of access to a peer that end", 20, [&](int) {
    const CUresult enabled = cuCtxEnablePeerAccess(peer, 0);
    return enabled != CUDA_SUCCESS ? enabled : cuCtxDisablePeerAccess(peer);
  });
  take("grant of access to a peer", 1, [&](int) { return cuCtxEnablePeerAccess(peer, 0); });
  EXPECT_EQ(cuCtxDisablePeerAccess(peer), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDestroy(peer), CUDA_SUCCESS);
}

// All objects of the tests above still exist.
TEST_F(CensusFacts, together_all_kinds_take_a_few_mib) {
  const long long taken = taken_since(free_at_start);
  std::printf("all kinds together: %lld bytes\n", taken);
  EXPECT_LE(taken, static_cast<long long>(kMostOfAll));
}

}  // namespace
}  // namespace cuwarden::contract
