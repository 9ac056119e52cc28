// Copies between pieces of two devices.
#include "tests/end_to_end/programs/memory_contract/pieces.hpp"

namespace cuwarden::memory_contract {
namespace {

class Peers : public MemoryTest {
 protected:
  void SetUp() override {
    if (devices().size() < 2) GTEST_SKIP() << "needs two devices";
    int there = 0, back = 0;
    ASSERT_EQ(cuDeviceCanAccessPeer(&there, devices()[0].handle, devices()[1].handle),
              CUDA_SUCCESS);
    ASSERT_EQ(cuDeviceCanAccessPeer(&back, devices()[1].handle, devices()[0].handle), CUDA_SUCCESS);
    if (there == 0 || back == 0) GTEST_SKIP() << "needs devices that reach each other";
    MemoryTest::SetUp();
    select(1);
    for (const Piece& piece : pieces)
      if (piece.size() < 4 * kMiB) others.push_back(make_piece(piece.size()));
    select(0);
  }
  void TearDown() override {
    if (others.empty()) return;
    for (const int each : {0, 1}) {
      select(each);
      EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    }
    for (const Piece& piece : others) {
      expect_right(piece);
      EXPECT_EQ(cuMemFree(piece.start), CUDA_SUCCESS);
    }
    select(0);
    MemoryTest::TearDown();
  }
  static void select(int device) {
    ASSERT_EQ(cuCtxSetCurrent(devices()[static_cast<std::size_t>(device)].context), CUDA_SUCCESS);
  }
  // Copies from one device to the other, with each of them current.
  template <class Copy>
  void copy_both_ways(Copy copy) {
    for (const int current : {0, 1}) {
      select(current);
      for (std::size_t i = 0; i < others.size(); ++i) {
        const std::size_t half = (pieces[i].size() + 1) / 2, rest = pieces[i].size() - half;
        ASSERT_EQ(copy(others[i].start, 1, pieces[i].start, 0, half), CUDA_SUCCESS);
        others[i].put(0, pieces[i].bytes.data(), half);
        if (rest == 0) continue;
        ASSERT_EQ(copy(pieces[i].start + half, 0, others[i].start + half, 1, rest), CUDA_SUCCESS);
        pieces[i].put(half, others[i].bytes.data() + half, rest);
      }
      for (const int each : {0, 1}) {
        select(each);
        ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
      }
      // New contents, so that a second round of the copies moves other bytes.
      select(1);
      for (Piece& other : others) refill(other);
    }
    select(0);
  }
  static CUcontext context_of(int device) {
    return devices()[static_cast<std::size_t>(device)].context;
  }

  std::vector<Piece> others;
};

TEST_F(Peers, are_copied_between) {
  copy_both_ways(
      [](CUdeviceptr to, int to_device, CUdeviceptr from, int from_device, std::size_t count) {
        return cuMemcpyPeer(to, context_of(to_device), from, context_of(from_device), count);
      });
}

TEST_F(Peers, are_copied_between_in_streams) {
  copy_both_ways(
      [](CUdeviceptr to, int to_device, CUdeviceptr from, int from_device, std::size_t count) {
        return cuMemcpyPeerAsync(to, context_of(to_device), from, context_of(from_device), count,
                                 nullptr);
      });
}

TEST_F(Peers, are_copied_between_in_boxes) {
  copy_both_ways(
      [](CUdeviceptr to, int to_device, CUdeviceptr from, int from_device, std::size_t count) {
        CUDA_MEMCPY3D_PEER box{};
        box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        box.srcDevice = from, box.dstDevice = to;
        box.srcContext = context_of(from_device), box.dstContext = context_of(to_device);
        box.srcPitch = box.dstPitch = box.WidthInBytes = count;
        box.srcHeight = box.dstHeight = box.Height = box.Depth = 1;
        return cuMemcpy3DPeer(&box);
      });
}

TEST_F(Peers, are_copied_by_their_addresses) {
  copy_both_ways([](CUdeviceptr to, int, CUdeviceptr from, int, std::size_t count) {
    return cuMemcpy(to, from, count);
  });
}

TEST_F(Peers, are_copied_and_filled_once_access_was_given) {
  for (const int each : {0, 1}) {
    select(each);
    ASSERT_EQ(cuCtxEnablePeerAccess(context_of(1 - each), 0), CUDA_SUCCESS);
  }
  copy_both_ways([](CUdeviceptr to, int, CUdeviceptr from, int, std::size_t count) {
    return cuMemcpyDtoDAsync(to, from, count, nullptr);
  });
  // Pieces that are made after access was given can be used, too. The device writes into the other
  // device's pieces.
  for (Piece& other : others) {
    select(1);
    ASSERT_EQ(cuMemFree(other.start), CUDA_SUCCESS);
    other = make_piece(other.size());
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);  // the copy from the host may still be under way
    select(0);
    ASSERT_EQ(cuMemsetD8(other.start, 0x2f, other.size()), CUDA_SUCCESS);
    other.set(0, 0x2f, other.size());
  }
  for (const int each : {0, 1}) {
    select(each);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxDisablePeerAccess(context_of(1 - each)), CUDA_SUCCESS);
  }
  select(0);
}

TEST_F(Peers, are_freed_by_the_other_one) {
  for (Piece& piece : pieces) {
    select(1);
    ASSERT_EQ(cuMemFree(piece.start), CUDA_SUCCESS);
    select(0);
    piece = make_piece(piece.size());
  }
}

}  // namespace
}  // namespace cuwarden::memory_contract
