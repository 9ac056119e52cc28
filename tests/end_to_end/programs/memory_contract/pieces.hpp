// Pieces of memory of many sizes that live at once, each with its own contents, and a copy of each
// on the host. A test changes a piece and its copy in the same way, and then all are compared byte
// by byte. The tests do not know if the pool or the driver serves a piece.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace cuwarden::memory_contract {

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;
// Sizes below the driver's step and above it, within slabs and beyond them, that fill pages, and
// that would waste much of a page.
constexpr std::size_t sizes[] = {1,
                                 511,
                                 512,
                                 513,
                                 4 * kKiB,
                                 64 * kKiB + 1,
                                 kMiB,
                                 kMiB + kMiB / 2,
                                 2 * kMiB - 1,
                                 2 * kMiB,
                                 3 * kMiB,
                                 33 * kMiB + 1};

using Bytes = std::vector<unsigned char>;

// Returns random contents, other ones each time.
Bytes random_bytes(std::size_t count);
// Reports at most one failure, with the first offset at which the bytes differ.
void expect_same(std::span<const unsigned char> got, std::span<const unsigned char> wanted,
                 const char* what);

struct Piece {
  CUdeviceptr start = 0;
  Bytes bytes;

  std::size_t size() const { return bytes.size(); }
  // Change the host's copy of the piece; the caller has the device change the piece in the same
  // way.
  void put(std::size_t at, const unsigned char* from, std::size_t count) {
    std::memcpy(bytes.data() + at, from, count);
  }
  void set(std::size_t at, unsigned char value, std::size_t count) {
    std::memset(bytes.data() + at, value, count);
  }
};

// Makes a piece with random contents, in the current context.
Piece make_piece(std::size_t size);
void refill(Piece&);
void expect_right(const Piece&);

struct Slice {
  std::size_t at, count;
};
// Returns slices of a piece: all of it, its ends, and slices that begin and end at odd offsets.
std::vector<Slice> slices_of(std::size_t size);

struct Device {
  CUdevice handle = 0;
  CUcontext context = nullptr;  // the device's primary context
};
std::vector<Device>& devices();
CUcontext make_context(CUdevice);

// Has pieces of all sizes in the primary context of the first device. They outlive the test. Each
// test ends by comparing all of them, since a call on one piece may have changed another one.
class MemoryTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  // Returns the pieces of at least this many bytes.
  static std::vector<Piece*> from_size(std::size_t least);
  static void expect_all_right();
  void synchronise() const { ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS); }

  static std::vector<Piece> pieces;
  CUstream stream = nullptr;  // a non-blocking stream
};

// Keeps the stream busy for a while, as a kernel would.
void begin_long_work(CUstream);
bool is_long_work_done();

// One side of a copy of boxes: memory of the device, or of the host where `device` is 0.
struct Side {
  Bytes* bytes = nullptr;
  CUdeviceptr device = 0;
  std::size_t x = 0, y = 0, z = 0, pitch = 0, height = 0;
};
inline Side side_of(Piece& piece, std::size_t pitch, std::size_t height) {
  return {.bytes = &piece.bytes, .device = piece.start, .pitch = pitch, .height = height};
}
inline Side side_of(Bytes& bytes, std::size_t pitch, std::size_t height) {
  return {.bytes = &bytes, .pitch = pitch, .height = height};
}
struct Extent {
  std::size_t width, height, depth;
};
CUDA_MEMCPY3D box_of(const Side& to, const Side& from, const Extent&);
CUDA_MEMCPY2D rows_of(const Side& to, const Side& from, const Extent&);
// Does the copy on the host's copies of the pieces.
void copy_on_host(const Side& to, const Side& from, const Extent&);

}  // namespace cuwarden::memory_contract
