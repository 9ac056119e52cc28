// Pieces of device memory of many sizes, each with a copy of its contents on the host. A test
// changes a piece and its copy in the same way. Then all pieces are compared with their copies. The
// tests do not know if cuwarden's pool or the driver serves a piece.
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

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;  // numbers of bytes
// Sizes in bytes of the pieces of memory that all tests use: below and above the driver's step of
// 512 bytes, and below and above its slabs of 2 MiB. Some fill pages of 2 MiB, others waste much of
// one.
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

// Contents of a piece of memory, on the host.
using Bytes = std::vector<unsigned char>;

// Returns `count` random bytes, different ones at each call.
Bytes random_bytes(std::size_t count);
// Fails the test if the bytes `got` are not those that were `wanted`, with one message that names
// the first offset at which they differ. `what`: the name of the bytes in the message.
void expect_same(std::span<const unsigned char> got, std::span<const unsigned char> wanted,
                 const char* what);

// A piece of device memory, with a copy of its contents on the host.
struct Piece {
  CUdeviceptr start = 0;  // the piece's device address
  Bytes bytes;            // the contents that the piece must have

  // Returns the size of the piece in bytes.
  std::size_t size() const { return bytes.size(); }
  // Copies `count` bytes of `from` to the host's copy of the piece, from offset `at` on. The caller
  // has the device change the piece in the same way.
  void put(std::size_t at, const unsigned char* from, std::size_t count) {
    std::memcpy(bytes.data() + at, from, count);
  }
  // Fills `count` bytes of the host's copy of the piece, from offset `at` on. The caller has the
  // device change the piece in the same way.
  void set(std::size_t at, unsigned char value, std::size_t count) {
    std::memset(bytes.data() + at, value, count);
  }
};

// Makes a piece of `size` bytes with random contents, in the current context.
Piece make_piece(std::size_t size);
// Gives the piece new random contents, on the device and in its copy.
void refill(Piece&);
// Fails the test if the piece's memory on the device differs from its copy on the host.
void expect_right(const Piece&);

// A part of a piece: the offset of its first byte, and the number of its bytes.
struct Slice {
  // Offset in bytes from the start of the piece; number of bytes, from 1.
  std::size_t at, count;
};
// Returns slices of a piece of `size` bytes: all of it, its first and its last byte, and one that
// begins and ends at odd offsets.
std::vector<Slice> slices_of(std::size_t size);

// A device, with the context in which the tests use it.
struct Device {
  CUdevice handle = 0;          // the driver's handle of the device
  CUcontext context = nullptr;  // the device's primary context
};
// Returns the list of the devices that the tests use, which main() fills.
std::vector<Device>& devices();
// Makes a context on the device, and makes it current. Fails the test if the driver refuses.
CUcontext make_context(CUdevice);

// Fixture with a piece of each size in the primary context of the first device. The pieces are made
// once for all tests. Each test ends with a comparison of all pieces, since a call on one piece may
// have changed another one.
class MemoryTest : public testing::Test {
 protected:
  // Makes the first device's primary context current, and a stream. Makes the pieces if this is the
  // first test.
  void SetUp() override;
  // Waits for the device, and compares all pieces with their copies. Destroys the stream.
  void TearDown() override;
  // Returns the pieces of at least `least` bytes.
  static std::vector<Piece*> from_size(std::size_t least);
  // Fails the test if any piece's memory on the device differs from its copy on the host.
  static void expect_all_right();
  // Waits until the device has done all work in `stream`.
  void synchronise() const { ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS); }

  // A piece of each of the `sizes`, made by the first test.
  static std::vector<Piece> pieces;
  // A non-blocking stream of this test.
  CUstream stream = nullptr;
};

// Queues a host function that takes 20 ms in the stream, in place of a long kernel. Does not wait
// for it; is_long_work_done() says when it is done.
void begin_long_work(CUstream);
// Returns true once the work of the last begin_long_work() is done.
bool is_long_work_done();

// One side (source or destination) of a copy of a box of bytes: memory of the device, or of the
// host if `device` is 0.
struct Side {
  // The side's bytes on the host: the memory itself, or the host's copy of the piece on the device.
  Bytes* bytes = nullptr;
  // Device address of the piece; 0: the side is memory of the host.
  CUdeviceptr device = 0;
  // Position of the box: byte in the row, row, and layer. Bytes from row to row (`pitch`), and rows
  // from layer to layer (`height`).
  std::size_t x = 0, y = 0, z = 0, pitch = 0, height = 0;
};
// Returns a side whose memory is a piece on the device; the box begins at its start. `pitch`: bytes
// from row to row; `height`: rows from layer to layer.
inline Side side_of(Piece& piece, std::size_t pitch, std::size_t height) {
  return {.bytes = &piece.bytes, .device = piece.start, .pitch = pitch, .height = height};
}
// Returns a side whose memory is on the host; the box begins at its start. `pitch`: bytes from row
// to row; `height`: rows from layer to layer.
inline Side side_of(Bytes& bytes, std::size_t pitch, std::size_t height) {
  return {.bytes = &bytes, .pitch = pitch, .height = height};
}
// Size of a box of bytes that is copied.
struct Extent {
  // Bytes in a row, rows in a layer, and layers of the box.
  std::size_t width, height, depth;
};
// Returns the parameters by which cuMemcpy3D copies a box of bytes.
CUDA_MEMCPY3D box_of(const Side& to, const Side& from, const Extent&);
// Returns the parameters by which cuMemcpy2D copies the box's first layer. `z` of both sides is 0.
CUDA_MEMCPY2D rows_of(const Side& to, const Side& from, const Extent&);
// Copies a box of bytes between the two sides' bytes on the host, as the device does between their
// memory.
void copy_on_host(const Side& to, const Side& from, const Extent&);

}  // namespace cuwarden::memory_contract
