// Copies between pieces and arrays.
#include "tests/end_to_end/programs/memory_contract/pieces.hpp"

namespace cuwarden::memory_contract {
namespace {

class Arrays : public MemoryTest {
 protected:
  static constexpr std::size_t width = 512, height = 12, depth = 3;  // in words of four bytes
  static constexpr std::size_t row = width * 4;

  CUarray make(std::size_t rows, std::size_t slices) const {
    CUDA_ARRAY3D_DESCRIPTOR shape{};
    shape.Width = width;
    shape.Height = rows;
    shape.Depth = slices;
    shape.Format = CU_AD_FORMAT_UNSIGNED_INT32;
    shape.NumChannels = 1;
    CUarray made = nullptr;
    EXPECT_EQ(cuArray3DCreate(&made, &shape), CUDA_SUCCESS);
    return made;
  }
  std::vector<Piece*> large() { return from_size(64 * kKiB); }
};

CUDA_MEMCPY3D to_array(CUarray array, const Side& from, const Extent& extent) {
  CUDA_MEMCPY3D box = box_of(from, from, extent);
  box.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  box.dstArray = array;
  box.dstXInBytes = box.dstY = box.dstZ = 0;
  return box;
}
CUDA_MEMCPY3D from_array(const Side& to, CUarray array, const Extent& extent) {
  CUDA_MEMCPY3D box = box_of(to, to, extent);
  box.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  box.srcArray = array;
  box.srcXInBytes = box.srcY = box.srcZ = 0;
  return box;
}

TEST_F(Arrays, in_one_row) {
  for (Piece* const piece : large()) {
    const CUarray array = make(0, 0);
    const std::size_t at = 1024, count = row - 512;
    ASSERT_EQ(cuMemcpyDtoA(array, 0, piece->start + at, count), CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpyAtoD(piece->start + 8 * kKiB, array, 0, count), CUDA_SUCCESS);
    piece->put(8 * kKiB, piece->bytes.data() + at, count);
    Bytes got(count);
    ASSERT_EQ(cuMemcpyAtoH(got.data(), array, 0, count), CUDA_SUCCESS);
    expect_same(got, {piece->bytes.data() + at, count}, "a row");
    ASSERT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
  }
}

TEST_F(Arrays, in_a_plane) {
  for (Piece* const piece : large()) {
    const CUarray array = make(height, 0);
    const Extent all{row, height, 1};
    const Side source = side_of(*piece, 2 * row, height);
    Side target = source;
    target.x = row;
    const CUDA_MEMCPY3D in = to_array(array, source, all), out = from_array(target, array, all);
    ASSERT_EQ(cuMemcpy3D(&in), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    Bytes got(row * height), wanted(row * height);
    ASSERT_EQ(cudaMemcpy2DFromArray(got.data(), row, reinterpret_cast<cudaArray_t>(array), 0, 0,
                                    row, height, cudaMemcpyDeviceToHost),
              cudaSuccess);
    copy_on_host(side_of(wanted, row, height), source, all);
    expect_same(got, wanted, "a plane");
    ASSERT_EQ(cuMemcpy3DAsync(&out, stream), CUDA_SUCCESS);
    copy_on_host(target, source, all);
    synchronise();
    ASSERT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
  }
}

TEST_F(Arrays, in_a_box) {
  for (Piece* const piece : from_size(kMiB)) {
    const CUarray array = make(height, depth);
    const Extent all{row, height, depth};
    Side source = side_of(*piece, 2 * row, 2 * height), target = source;
    source.y = 3;
    target.x = row;
    const CUDA_MEMCPY3D in = to_array(array, source, all), out = from_array(target, array, all);
    ASSERT_EQ(cuMemcpy3DAsync(&in, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpy3DAsync(&out, stream), CUDA_SUCCESS);
    copy_on_host(target, source, all);
    synchronise();
    ASSERT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
  }
}

}  // namespace
}  // namespace cuwarden::memory_contract
