// Page-locked host memory: the host reads and writes it as its own, and the device reaches it by
// the same address. It is freed only when the device no longer uses it.
#include <algorithm>
#include <thread>

#include "tests/end_to_end/programs/memory_contract/pieces.hpp"

namespace cuwarden::memory_contract {
namespace {

// The ways to ask for page-locked memory.
enum class Way { alloc_host, host_alloc, portable, mapped, write_combined, by_runtime };
constexpr Way ways[] = {Way::alloc_host, Way::host_alloc,     Way::portable,
                        Way::mapped,     Way::write_combined, Way::by_runtime};

unsigned flags_of(Way way) {
  return way == Way::portable         ? CU_MEMHOSTALLOC_PORTABLE
         : way == Way::mapped         ? CU_MEMHOSTALLOC_DEVICEMAP
         : way == Way::write_combined ? CU_MEMHOSTALLOC_WRITECOMBINED
                                      : 0;
}

void* allocate(Way way, std::size_t size) {
  void* made = nullptr;
  if (way == Way::by_runtime)
    EXPECT_EQ(cudaMallocHost(&made, size), cudaSuccess);
  else if (way == Way::alloc_host)
    EXPECT_EQ(cuMemAllocHost(&made, size), CUDA_SUCCESS);
  else
    EXPECT_EQ(cuMemHostAlloc(&made, size, flags_of(way)), CUDA_SUCCESS);
  return made;
}

struct Locked {
  unsigned char* start = nullptr;
  Bytes bytes;
  Way way = Way::host_alloc;

  std::size_t size() const { return bytes.size(); }
  CUdeviceptr address() const { return reinterpret_cast<CUdeviceptr>(start); }
};

Locked make_locked(Way way, std::size_t size) {
  Locked made{static_cast<unsigned char*>(allocate(way, size)), random_bytes(size), way};
  if (made.start == nullptr) std::abort();
  std::memcpy(made.start, made.bytes.data(), size);
  return made;
}

// Has one block of each size, made in the different ways by turns, and device pieces of the same
// sizes.
class PageLocked : public MemoryTest {
 protected:
  void SetUp() override {
    MemoryTest::SetUp();
    if (HasFatalFailure() || !all.empty()) return;
    for (std::size_t i = 0; i < std::size(sizes); ++i)
      all.push_back(make_locked(ways[i % std::size(ways)], sizes[i]));
  }
  void TearDown() override {
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    expect_all_locked_right();
    MemoryTest::TearDown();
  }
  static void TearDownTestSuite() {
    for (const Locked& each : all) EXPECT_EQ(cuMemFreeHost(each.start), CUDA_SUCCESS);
    all.clear();
  }
  static void expect_all_locked_right() {
    for (const Locked& each : all)
      expect_same({each.start, each.size()}, each.bytes, "page-locked memory");
  }
  template <class Free>
  static void free_and_make_again(Free free) {
    for (const std::size_t kept : {0u, 1u, 2u}) {
      for (std::size_t i = 0; i < all.size(); ++i)
        if (i % 3 != kept) free(all[i].start);
      for (std::size_t i = 0; i < all.size(); ++i)
        if (i % 3 != kept) all[i] = make_locked(all[i].way, all[i].size());
      expect_all_locked_right();
    }
  }

  static std::vector<Locked> all;  // outlive the test, like MemoryTest::pieces
};
std::vector<Locked> PageLocked::all;

TEST_F(PageLocked, begins_at_a_multiple_of_512_and_none_lies_in_another) {
  std::vector<const Locked*> sorted;
  for (const Locked& each : all) sorted.push_back(&each);
  std::ranges::sort(sorted, {}, &Locked::start);
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    EXPECT_EQ(sorted[i]->address() % 512, 0u);
    if (i > 0) {
      EXPECT_LE(sorted[i - 1]->start + sorted[i - 1]->size(), sorted[i]->start);
    }
  }
}

TEST_F(PageLocked, is_copied_to_the_device_and_back_in_a_stream) {
  begin_long_work(stream);
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(cuMemcpyHtoDAsync(pieces[i].start, all[i].start, all[i].size(), stream),
              CUDA_SUCCESS);
    pieces[i].bytes = all[i].bytes;
  }
  // The beginning of the next block is copied back.
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    ASSERT_EQ(cuMemcpyDtoHAsync(all[i].start, pieces[i + 1].start, all[i].size(), stream),
              CUDA_SUCCESS);
    std::memcpy(all[i].bytes.data(), pieces[i + 1].bytes.data(), all[i].size());
  }
  synchronise();
}

TEST_F(PageLocked, has_its_own_address_on_the_device) {
  for (const Locked& each : all) {
    for (const std::size_t at : {std::size_t{0}, each.size() / 2, each.size() - 1}) {
      CUdeviceptr device = 0;
      ASSERT_EQ(cuMemHostGetDevicePointer(&device, each.start + at, 0), CUDA_SUCCESS);
      EXPECT_EQ(device, each.address() + at);
      void* by_runtime = nullptr;
      ASSERT_EQ(cudaHostGetDevicePointer(&by_runtime, each.start + at, 0), cudaSuccess);
      EXPECT_EQ(by_runtime, each.start + at);
    }
  }
}

// The device reads and writes the memory in place.
TEST_F(PageLocked, is_read_and_written_by_its_device_pointer) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t count = (all[i].size() + 1) / 2;
    ASSERT_EQ(cuMemsetD8Async(all[i].address(), 0x47, count, stream), CUDA_SUCCESS);
    std::memset(all[i].bytes.data(), 0x47, count);
    ASSERT_EQ(cuMemcpyDtoDAsync(pieces[i].start, all[i].address(), all[i].size(), stream),
              CUDA_SUCCESS);
    pieces[i].bytes = all[i].bytes;
  }
  synchronise();
}

TEST_F(PageLocked, is_copied_in_rows_and_boxes) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].size() < 4 * kKiB) continue;
    const std::size_t pitch = 512, rows = all[i].size() / pitch, width = 301;
    Side locked{.bytes = &all[i].bytes, .pitch = pitch, .height = 4};
    const Side device = side_of(pieces[i], pitch, 4);
    const Extent extent{width, 2, rows / 4};
    CUDA_MEMCPY3D in = box_of(device, locked, extent);
    in.srcHost = all[i].start;
    ASSERT_EQ(cuMemcpy3DAsync(&in, stream), CUDA_SUCCESS);
    copy_on_host(device, locked, extent);
    locked.y = 2;
    CUDA_MEMCPY3D out = box_of(locked, device, extent);
    out.dstHost = all[i].start;
    ASSERT_EQ(cuMemcpy3DAsync(&out, stream), CUDA_SUCCESS);
    copy_on_host(locked, device, extent);
  }
  synchronise();
}

TEST_F(PageLocked, is_used_by_a_graph) {
  CUgraph graph = nullptr;
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(cuMemcpyHtoDAsync(pieces[i].start, all[i].start, all[i].size(), stream),
              CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD8Async(pieces[i].start, 0x21, 1, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoHAsync(all[i].start, pieces[i].start, all[i].size(), stream),
              CUDA_SUCCESS);
  }
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  CUgraphExec exec = nullptr;
  ASSERT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
  for (int launch = 0; launch < 3; ++launch) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].bytes = random_bytes(all[i].size());
      std::memcpy(all[i].start, all[i].bytes.data(), all[i].size());
      all[i].bytes[0] = 0x21;
      pieces[i].bytes = all[i].bytes;
    }
    ASSERT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
    synchronise();
    expect_all_locked_right();
    expect_all_right();
  }
  EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
}

// The expected flags and context are those of a large block that is made in the same way.
TEST_F(PageLocked, has_the_flags_and_the_context_of_its_way) {
  const auto context_of = [](const void* address) {
    CUcontext context = nullptr;
    EXPECT_EQ(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT,
                                    reinterpret_cast<CUdeviceptr>(address)),
              CUDA_SUCCESS);
    return context;
  };
  for (const Way way : ways) {
    void* const large = allocate(way, 65 * kMiB);
    unsigned wanted = 0;
    ASSERT_EQ(cuMemHostGetFlags(&wanted, large), CUDA_SUCCESS);
    EXPECT_EQ(wanted & flags_of(way), flags_of(way));
    for (const Locked& each : all) {
      if (each.way != way) continue;
      for (const std::size_t at : {std::size_t{0}, each.size() - 1}) {
        unsigned flags = 99;
        ASSERT_EQ(cuMemHostGetFlags(&flags, each.start + at), CUDA_SUCCESS);
        // A small block may share a page with other blocks of the driver's, and then has their
        // flag.
        EXPECT_EQ(flags | CU_MEMHOSTALLOC_PORTABLE, wanted | CU_MEMHOSTALLOC_PORTABLE)
            << "way " << static_cast<int>(way) << ", " << each.size();
        EXPECT_EQ(context_of(each.start + at), context_of(large));
      }
    }
    ASSERT_EQ(cuMemFreeHost(large), CUDA_SUCCESS);
  }
}

TEST_F(PageLocked, is_said_to_be_the_hosts) {
  for (const Locked& each : all) {
    for (const std::size_t at : {std::size_t{0}, each.size() / 2, each.size() - 1}) {
      const CUdeviceptr address = each.address() + at;
      unsigned type = 0;
      void* host = nullptr;
      CUdeviceptr start = 0;
      std::size_t count = 0;
      ASSERT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address),
                CUDA_SUCCESS);
      EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_HOST));
      ASSERT_EQ(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, address),
                CUDA_SUCCESS);
      EXPECT_EQ(host, each.start + at);
      ASSERT_EQ(cuMemGetAddressRange(&start, &count, address), CUDA_SUCCESS);
      EXPECT_EQ(start, each.address());
      EXPECT_EQ(count, each.size());
      cudaPointerAttributes attributes{};
      ASSERT_EQ(cudaPointerGetAttributes(&attributes, each.start + at), cudaSuccess);
      EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
      EXPECT_EQ(attributes.hostPointer, each.start + at);
      EXPECT_EQ(attributes.devicePointer, each.start + at);
    }
  }
}

TEST_F(PageLocked, is_freed_by_its_start_alone_and_by_its_own_function) {
  for (const Locked& each : all) {
    if (each.size() > 1) {
      EXPECT_EQ(cuMemFreeHost(each.start + each.size() / 2), CUDA_ERROR_INVALID_VALUE);
    }
    EXPECT_EQ(cuMemFree(each.address()), CUDA_ERROR_INVALID_VALUE);
    EXPECT_NE(cuMemHostUnregister(each.start), CUDA_SUCCESS);
  }
}

TEST_F(PageLocked, freed_memory_is_unknown_to_the_driver) {
  for (Locked& each : all) {
    ASSERT_EQ(cuMemFreeHost(each.start), CUDA_SUCCESS);
    CUdeviceptr start = 0;
    std::size_t count = 0;
    EXPECT_EQ(cuMemGetAddressRange(&start, &count, each.address()), CUDA_ERROR_NOT_FOUND);
    EXPECT_EQ(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_HOST_POINTER, each.address()),
              CUDA_ERROR_INVALID_VALUE);
    cudaPointerAttributes attributes{};
    ASSERT_EQ(cudaPointerGetAttributes(&attributes, each.start), cudaSuccess);
    EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
    EXPECT_EQ(cuMemFreeHost(each.start), CUDA_ERROR_INVALID_VALUE);
    each = make_locked(each.way, each.size());
  }
}

TEST_F(PageLocked, is_freed_from_anywhere) {
  free_and_make_again([](void* start) { ASSERT_EQ(cuMemFreeHost(start), CUDA_SUCCESS); });
  free_and_make_again([](void* start) { ASSERT_EQ(cudaFreeHost(start), cudaSuccess); });
  free_and_make_again([](void* start) {
    std::thread([start] { ASSERT_EQ(cudaFreeHost(start), cudaSuccess); }).join();
  });
  const CUcontext other = make_context(devices()[0].handle);
  free_and_make_again([&](void* start) {
    ASSERT_EQ(cuCtxSetCurrent(other), CUDA_SUCCESS);
    ASSERT_EQ(cuMemFreeHost(start), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(devices()[0].context), CUDA_SUCCESS);
  });
  ASSERT_EQ(cuCtxDestroy(other), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(devices()[0].context), CUDA_SUCCESS);
}

TEST_F(PageLocked, is_freed_after_the_work_that_reads_it) {
  begin_long_work(stream);
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(cuMemcpyHtoDAsync(pieces[i].start, all[i].start, all[i].size(), stream),
              CUDA_SUCCESS);
    pieces[i].bytes = all[i].bytes;
  }
  for (const Locked& each : all) {
    ASSERT_EQ(cuMemFreeHost(each.start), CUDA_SUCCESS);
    EXPECT_TRUE(is_long_work_done());
  }
  for (Locked& each : all) each = make_locked(each.way, each.size());
  synchronise();
}

}  // namespace
}  // namespace cuwarden::memory_contract
