// Copies of bytes, rows and boxes, between pieces and with the host.
#include <algorithm>

#include "tests/end_to_end/programs/memory_contract/pieces.hpp"

namespace cuwarden::memory_contract {
namespace {

using Copies = MemoryTest;

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }
CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

TEST_F(Copies, from_and_to_the_host_of_all_and_of_parts) {
  for (Piece& piece : pieces) {
    for (const auto& [at, count] : slices_of(piece.size())) {
      const Bytes sent = random_bytes(count);
      Bytes got(count);
      ASSERT_EQ(cuMemcpyHtoD(piece.start + at, sent.data(), count), CUDA_SUCCESS);
      piece.put(at, sent.data(), count);
      ASSERT_EQ(cuMemcpyDtoH(got.data(), piece.start + at, count), CUDA_SUCCESS);
      expect_same(got, sent, "a slice");
    }
  }
}

TEST_F(Copies, by_addresses_alone) {
  for (Piece& piece : pieces) {
    for (const auto& [at, count] : slices_of(piece.size())) {
      const Bytes sent = random_bytes(count);
      Bytes got(count);
      ASSERT_EQ(cuMemcpy(piece.start + at, address(sent.data()), count), CUDA_SUCCESS);
      piece.put(at, sent.data(), count);
      ASSERT_EQ(cuMemcpyAsync(address(got.data()), piece.start + at, count, stream), CUDA_SUCCESS);
      synchronise();
      expect_same(got, sent, "a slice");
    }
  }
}

TEST_F(Copies, in_a_stream_behind_other_work) {
  begin_long_work(stream);
  std::vector<Bytes> sent, got;
  for (Piece& piece : pieces) {
    sent.push_back(random_bytes(piece.size()));
    got.emplace_back(piece.size());
    ASSERT_EQ(cuMemcpyHtoDAsync(piece.start, sent.back().data(), piece.size(), stream),
              CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpyDtoHAsync(got.back().data(), piece.start, piece.size(), stream),
              CUDA_SUCCESS);
    piece.put(0, sent.back().data(), piece.size());
  }
  synchronise();
  for (std::size_t i = 0; i < sent.size(); ++i) expect_same(got[i], sent[i], "a copy");
}

// Copies the end of each piece to the beginning of each other piece.
TEST_F(Copies, from_each_piece_to_each_other) {
  bool in_stream = false;
  for (Piece& from : pieces) {
    for (Piece& to : pieces) {
      if (&from == &to) continue;
      const std::size_t count = std::min(from.size(), to.size()), at = from.size() - count;
      in_stream = !in_stream;
      ASSERT_EQ(in_stream ? cuMemcpyDtoDAsync(to.start, from.start + at, count, stream)
                          : cuMemcpyDtoD(to.start, from.start + at, count),
                CUDA_SUCCESS);
      to.put(0, from.bytes.data() + at, count);
      ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    }
  }
}

TEST_F(Copies, within_a_piece) {
  for (Piece* const piece : from_size(2)) {
    const std::size_t count = piece->size() / 2, at = piece->size() - count;
    ASSERT_EQ(cuMemcpyDtoD(piece->start, piece->start + at, count), CUDA_SUCCESS);
    piece->put(0, piece->bytes.data() + at, count);
  }
}

// Each piece of 4 KiB and more is taken for a plane, and for boxes of four rows.
struct Shape {
  std::size_t pitch, rows, width;
};
Shape shape_of(const Piece& piece) {
  const std::size_t pitch = piece.size() >= kMiB ? 8 * kKiB : 512;
  return {pitch, piece.size() / pitch, pitch - 131};
}

TEST_F(Copies, rows_arrive_whole) {
  for (Piece* const piece : from_size(4 * kKiB)) {
    const auto [pitch, rows, width] = shape_of(*piece);
    Bytes host = random_bytes(width * rows);
    const Extent all{width, rows, 1};
    const Side device = side_of(*piece, pitch, rows), sent = side_of(host, width, rows);
    const CUDA_MEMCPY2D in = rows_of(device, sent, all);
    ASSERT_EQ(cuMemcpy2D(&in), CUDA_SUCCESS);
    copy_on_host(device, sent, all);
    // Copies from the middle of the piece to the host, in the stream. Then copies to an odd offset,
    // and to odd rows of the piece itself.
    Bytes got(width * rows), wanted(width * rows);
    Side part = device;
    part.x = 77, part.y = 1;
    const Extent middle{width / 2, rows - 1, 1};
    const CUDA_MEMCPY2D out = rows_of(side_of(got, width, rows), part, middle);
    ASSERT_EQ(cuMemcpy2DAsync(&out, stream), CUDA_SUCCESS);
    copy_on_host(side_of(wanted, width, rows), part, middle);
    synchronise();
    expect_same(got, wanted, "rows");
    Side upper = device, lower = device;
    upper.x = 5, lower.x = 9, lower.y = rows / 2;
    const Extent half{width - 9, rows / 2, 1};
    const CUDA_MEMCPY2D within = rows_of(lower, upper, half);
    ASSERT_EQ(cuMemcpy2DUnaligned(&within), CUDA_SUCCESS);
    copy_on_host(lower, upper, half);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }
}

TEST_F(Copies, boxes_arrive_whole) {
  for (Piece* const piece : from_size(4 * kKiB)) {
    const auto [pitch, rows, width] = shape_of(*piece);
    const Extent most{width, 3, rows / 4};
    const Side device = side_of(*piece, pitch, 4);
    Bytes host = random_bytes(width * 3 * most.depth);
    const Side sent = side_of(host, width, 3);
    const CUDA_MEMCPY3D in = box_of(device, sent, most);
    ASSERT_EQ(cuMemcpy3D(&in), CUDA_SUCCESS);
    copy_on_host(device, sent, most);
    Side inner = device;
    inner.x = 33, inner.y = 1, inner.z = most.depth / 2;
    const Extent half{width - 33, 2, most.depth - inner.z};
    const CUDA_MEMCPY3D within = box_of(device, inner, {half.width, 1, inner.z});
    ASSERT_EQ(cuMemcpy3DAsync(&within, stream), CUDA_SUCCESS);
    copy_on_host(device, inner, {half.width, 1, inner.z});
    Bytes got(host.size()), wanted(host.size());
    const CUDA_MEMCPY3D out = box_of(side_of(got, width, 3), inner, half);
    ASSERT_EQ(cuMemcpy3DAsync(&out, stream), CUDA_SUCCESS);
    copy_on_host(side_of(wanted, width, 3), inner, half);
    synchronise();
    expect_same(got, wanted, "a box");
  }
}

TEST_F(Copies, from_one_piece_to_the_next_in_rows_and_boxes) {
  const std::vector<Piece*> large = from_size(4 * kKiB);
  for (std::size_t i = 0; i + 1 < large.size(); ++i) {
    const auto [pitch, rows, width] = shape_of(*large[i]);
    const Side from = side_of(*large[i], pitch, rows), to = side_of(*large[i + 1], pitch, rows);
    const Extent all{width, rows, 1};
    const CUDA_MEMCPY2D plane = rows_of(to, from, all);
    ASSERT_EQ(cuMemcpy2DAsync(&plane, stream), CUDA_SUCCESS);
    copy_on_host(to, from, all);
    Side deep_from = from, deep_to = to;
    deep_from.height = deep_to.height = 4;
    deep_to.y = 2;
    const Extent box_extent{width, 2, rows / 4};
    const CUDA_MEMCPY3D box = box_of(deep_to, deep_from, box_extent);
    ASSERT_EQ(cuMemcpy3DAsync(&box, stream), CUDA_SUCCESS);
    copy_on_host(deep_to, deep_from, box_extent);
    synchronise();
  }
}

TEST_F(Copies, by_the_runtime) {
  for (Piece& piece : pieces) {
    const Bytes sent = random_bytes(piece.size());
    Bytes got(piece.size());
    ASSERT_EQ(cudaMemcpy(pointer(piece.start), sent.data(), sent.size(), cudaMemcpyHostToDevice),
              cudaSuccess);
    piece.put(0, sent.data(), sent.size());
    ASSERT_EQ(
        cudaMemcpyAsync(got.data(), pointer(piece.start), got.size(), cudaMemcpyDefault, stream),
        cudaSuccess);
    synchronise();
    expect_same(got, sent, "a copy");
  }
  for (Piece* const piece : from_size(4 * kKiB)) {
    const auto [pitch, rows, width] = shape_of(*piece);
    Bytes host = random_bytes(width * rows), got(width * rows);
    ASSERT_EQ(cudaMemcpy2D(pointer(piece->start), pitch, host.data(), width, width, rows,
                           cudaMemcpyDefault),
              cudaSuccess);
    copy_on_host(side_of(*piece, pitch, rows), side_of(host, width, rows), {width, rows, 1});
    cudaMemcpy3DParms box{};
    box.srcPtr = cudaPitchedPtr{pointer(piece->start), pitch, width, rows};
    box.dstPtr = cudaPitchedPtr{got.data(), width, width, rows};
    box.extent = cudaExtent{width, rows, 1};
    box.kind = cudaMemcpyDeviceToHost;
    ASSERT_EQ(cudaMemcpy3D(&box), cudaSuccess);
    expect_same(got, host, "a box");
  }
}

#if CUDA_VERSION >= 13000
// The host's memory is page-locked, as batches need it.
class Batches : public MemoryTest {
 protected:
  unsigned char* host_memory(std::size_t size) {
    void* made = nullptr;
    EXPECT_EQ(cuMemAllocHost(&made, size), CUDA_SUCCESS);
    locked.push_back(made);
    return static_cast<unsigned char*>(made);
  }
  unsigned char* host_memory(const Bytes& bytes) {
    unsigned char* const made = host_memory(bytes.size());
    std::memcpy(made, bytes.data(), bytes.size());
    return made;
  }
  void TearDown() override {
    for (void* const each : locked) EXPECT_EQ(cuMemFreeHost(each), CUDA_SUCCESS);
    MemoryTest::TearDown();
  }

 private:
  std::vector<void*> locked;
};

TEST_F(Batches, to_and_from_the_host_and_between_pieces) {
  std::vector<unsigned char*> got;
  std::vector<CUdeviceptr> to, from;
  std::vector<std::size_t> counts;
  const auto add = [&](CUdeviceptr target, CUdeviceptr source, std::size_t count) {
    to.push_back(target), from.push_back(source), counts.push_back(count);
  };
  const auto submit = [&] {
    CUmemcpyAttributes attributes{};
    attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    std::size_t first = 0;
    ASSERT_EQ(cuMemcpyBatchAsync(to.data(), from.data(), counts.data(), to.size(), &attributes,
                                 &first, 1, stream),
              CUDA_SUCCESS);
    to.clear(), from.clear(), counts.clear();
  };
  for (Piece& piece : pieces) {
    piece.bytes = random_bytes(piece.size());
    add(piece.start, address(host_memory(piece.bytes)), piece.size());
  }
  submit();
  // Each piece's first half comes from the end of the next larger piece.
  for (std::size_t i = 1; i + 1 < pieces.size(); ++i) {
    const std::size_t count = pieces[i].size() / 2, at = pieces[i + 1].size() - count;
    add(pieces[i].start, pieces[i + 1].start + at, count);
    pieces[i].put(0, pieces[i + 1].bytes.data() + at, count);
  }
  submit();
  for (const Piece& piece : pieces) {
    got.push_back(host_memory(piece.size()));
    add(address(got.back()), piece.start, piece.size());
  }
  submit();
  synchronise();
  for (std::size_t i = 0; i < pieces.size(); ++i)
    expect_same({got[i], pieces[i].size()}, pieces[i].bytes, "a copy");
}

TEST_F(Batches, boxes_arrive_whole) {
  std::vector<CUDA_MEMCPY3D_BATCH_OP> all;
  for (Piece* const piece : from_size(4 * kKiB)) {
    const auto [pitch, rows, width] = shape_of(*piece);
    Bytes sent = random_bytes(width * 3 * (rows / 4));
    CUDA_MEMCPY3D_BATCH_OP one{};
    one.src.type = one.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    one.src.op.ptr.ptr = address(host_memory(sent));
    one.dst.op.ptr.ptr = piece->start;
    one.dst.op.ptr.rowLength = pitch;
    one.dst.op.ptr.layerHeight = 4;
    one.extent = {width, 3, rows / 4};
    one.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    all.push_back(one);
    copy_on_host(side_of(*piece, pitch, 4), side_of(sent, width, 3), {width, 3, rows / 4});
  }
  ASSERT_EQ(cuMemcpy3DBatchAsync(all.size(), all.data(), 0, stream), CUDA_SUCCESS);
  synchronise();
}
#endif

}  // namespace
}  // namespace cuwarden::memory_contract
