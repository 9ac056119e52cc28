#include "tests/end_to_end/programs/memory_contract/pieces.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/end_to_end/programs/create_context.hpp"

namespace cuwarden::memory_contract {

Bytes random_bytes(std::size_t count) {
  // The generator is SplitMix64, whose numbers do not wait for each other's computation.
  static std::uint64_t state = 88172645463325252u;
  const auto next = [] {
    std::uint64_t mixed = state += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
  };
  Bytes bytes(count);
  std::size_t at = 0;
  for (; at + sizeof state <= count; at += sizeof state) {
    const std::uint64_t word = next();
    std::memcpy(bytes.data() + at, &word, sizeof word);
  }
  const std::uint64_t last = next();
  std::memcpy(bytes.data() + at, &last, count - at);
  return bytes;
}

void expect_same(std::span<const unsigned char> got, std::span<const unsigned char> wanted,
                 const char* what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  if (std::memcmp(got.data(), wanted.data(), got.size()) == 0) return;
  const auto first = std::mismatch(got.begin(), got.end(), wanted.begin());
  ADD_FAILURE() << what << " of " << got.size() << " bytes differs from byte "
                << first.first - got.begin() << " on: " << int{*first.first} << " instead of "
                << int{*first.second};
}

Piece make_piece(std::size_t size) {
  Piece piece;
  EXPECT_EQ(cuMemAlloc(&piece.start, size), CUDA_SUCCESS) << size;
  piece.bytes.resize(size);
  refill(piece);
  return piece;
}

void refill(Piece& piece) {
  piece.bytes = random_bytes(piece.size());
  EXPECT_EQ(cuMemcpyHtoD(piece.start, piece.bytes.data(), piece.size()), CUDA_SUCCESS);
}

void expect_right(const Piece& piece) {
  Bytes got(piece.size());
  ASSERT_EQ(cuMemcpyDtoH(got.data(), piece.start, got.size()), CUDA_SUCCESS) << piece.size();
  expect_same(got, piece.bytes, "a piece");
}

std::vector<Slice> slices_of(std::size_t size) {
  std::vector<Slice> all = {{0, size}, {0, 1}, {size - 1, 1}};
  if (size > 8) all.push_back({size / 3 + 1, size / 3});
  return all;
}

std::vector<Device>& devices() {
  static std::vector<Device> all;
  return all;
}

CUcontext make_context(CUdevice device) {
  CUcontext context = nullptr;
  EXPECT_EQ(test::create_context(&context, device), CUDA_SUCCESS);
  return context;
}

std::vector<Piece> MemoryTest::pieces;

void MemoryTest::SetUp() {
  ASSERT_EQ(cuCtxSetCurrent(devices()[0].context), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  if (pieces.empty())
    for (const std::size_t size : sizes) pieces.push_back(make_piece(size));
}

void MemoryTest::TearDown() {
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  expect_all_right();
  EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
}

void MemoryTest::expect_all_right() {
  for (const Piece& piece : pieces) expect_right(piece);
}

std::vector<Piece*> MemoryTest::from_size(std::size_t least) {
  std::vector<Piece*> found;
  for (Piece& piece : pieces)
    if (piece.size() >= least) found.push_back(&piece);
  return found;
}

static std::atomic<bool> long_work_done{false};

void begin_long_work(CUstream stream) {
  long_work_done = false;
  const auto work = [](void*) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    long_work_done = true;
  };
  ASSERT_EQ(cuLaunchHostFunc(stream, work, nullptr), CUDA_SUCCESS);
}

bool is_long_work_done() { return long_work_done; }

CUDA_MEMCPY3D box_of(const Side& to, const Side& from, const Extent& extent) {
  CUDA_MEMCPY3D box{};
  box.srcMemoryType = from.device != 0 ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  box.srcHost = from.device != 0 ? nullptr : from.bytes->data();
  box.srcDevice = from.device;
  box.srcXInBytes = from.x, box.srcY = from.y, box.srcZ = from.z;
  box.srcPitch = from.pitch, box.srcHeight = from.height;
  box.dstMemoryType = to.device != 0 ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  box.dstHost = to.device != 0 ? nullptr : to.bytes->data();
  box.dstDevice = to.device;
  box.dstXInBytes = to.x, box.dstY = to.y, box.dstZ = to.z;
  box.dstPitch = to.pitch, box.dstHeight = to.height;
  box.WidthInBytes = extent.width, box.Height = extent.height, box.Depth = extent.depth;
  return box;
}

CUDA_MEMCPY2D rows_of(const Side& to, const Side& from, const Extent& extent) {
  const CUDA_MEMCPY3D box = box_of(to, from, extent);
  CUDA_MEMCPY2D rows{};
  rows.srcXInBytes = box.srcXInBytes, rows.srcY = box.srcY;
  rows.srcMemoryType = box.srcMemoryType;
  rows.srcHost = box.srcHost, rows.srcDevice = box.srcDevice, rows.srcPitch = box.srcPitch;
  rows.dstXInBytes = box.dstXInBytes, rows.dstY = box.dstY;
  rows.dstMemoryType = box.dstMemoryType;
  rows.dstHost = box.dstHost, rows.dstDevice = box.dstDevice, rows.dstPitch = box.dstPitch;
  rows.WidthInBytes = box.WidthInBytes, rows.Height = box.Height;
  return rows;
}

void copy_on_host(const Side& to, const Side& from, const Extent& extent) {
  const auto row = [](const Side& side, std::size_t y, std::size_t z) {
    const std::size_t rows = (z + side.z) * side.height + y + side.y;
    return side.bytes->data() + rows * side.pitch + side.x;
  };
  for (std::size_t z = 0; z < extent.depth; ++z)
    for (std::size_t y = 0; y < extent.height; ++y)
      std::memcpy(row(to, y, z), row(from, y, z), extent.width);
}

}  // namespace cuwarden::memory_contract
