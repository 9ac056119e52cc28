// Memory of many sizes that lives at once, each piece with contents of its own, and what the host
// knows of them: whatever is done to one is done to its copy here, and then all are compared byte
// by byte. Nothing here knows whose the memory is.
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
// Less than the driver's step and more, what shares a slab of the driver and what does not, what
// fills its pages and what would waste much of them.
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

// Others each time.
Bytes random_bytes(std::size_t count);
// One failure for all of it, with the first place.
void expect_same(std::span<const unsigned char> got, std::span<const unsigned char> wanted,
                 const char* what);

struct Piece {
  CUdeviceptr start = 0;
  Bytes bytes;

  std::size_t size() const { return bytes.size(); }
  // What the host knows of it, after the device was told the same.
  void put(std::size_t at, const unsigned char* from, std::size_t count) {
    std::memcpy(bytes.data() + at, from, count);
  }
  void set(std::size_t at, unsigned char value, std::size_t count) {
    std::memset(bytes.data() + at, value, count);
  }
};

// With random contents, in the current context.
Piece make_piece(std::size_t size);
void refill(Piece&);
void expect_right(const Piece&);

struct Slice {
  std::size_t at, count;
};
// All of it, its ends, and what begins and ends at odd places.
std::vector<Slice> slices_of(std::size_t size);

struct Device {
  CUdevice handle = 0;
  CUcontext context = nullptr;  // the primary one
};
std::vector<Device>& devices();
CUcontext make_context(CUdevice);

// Pieces of all sizes in the primary context of the first device. They outlive the test, and each
// test ends with a look at all of them: what it did to one may have hit another.
class MemoryTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  // Of at least so many bytes.
  static std::vector<Piece*> from_size(std::size_t least);
  static void expect_all_right();
  void synchronise() const { ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS); }

  static std::vector<Piece> pieces;
  CUstream stream = nullptr;  // waits for no other
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
// What the copy does, done by the host.
void copy_on_host(const Side& to, const Side& from, const Extent&);

}  // namespace cuwarden::memory_contract
