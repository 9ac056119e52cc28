// Memset in all its forms.
#include "tests/end_to_end/programs/memory_contract/pieces.hpp"

namespace cuwarden::memory_contract {
namespace {

class Fills : public MemoryTest {
 protected:
  template <class Value>
  static void fill_on_host(Piece& piece, std::size_t at, Value value, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      std::memcpy(piece.bytes.data() + at + i * sizeof value, &value, sizeof value);
  }

  // Fills a part of each piece with values of this width: from an aligned offset to the last value
  // but one that there is room for.
  template <class Value, class Fill>
  void fill_parts(Value value, Fill fill) {
    for (Piece* const piece : from_size(4 * sizeof value)) {
      const std::size_t at = piece->size() >= 4 * kKiB ? 3 * sizeof value : 0,
                        count = (piece->size() - at) / sizeof value - 1;
      ASSERT_EQ(fill(piece->start + at, value, count), CUDA_SUCCESS);
      fill_on_host(*piece, at, value, count);
    }
    synchronise();
  }

  // Fills two thirds of each row of 1 KiB, except for the first row and the last.
  template <class Value, class Fill>
  void fill_rows(Value value, Fill fill) {
    constexpr std::size_t pitch = kKiB, width = pitch * 2 / 3 / sizeof(Value);
    for (Piece* const piece : from_size(4 * kKiB)) {
      const std::size_t rows = piece->size() / pitch - 2, at = pitch + 8;
      ASSERT_EQ(fill(piece->start + at, pitch, value, width, rows), CUDA_SUCCESS);
      for (std::size_t y = 0; y < rows; ++y) fill_on_host(*piece, at + y * pitch, value, width);
    }
    synchronise();
  }
};

constexpr unsigned char byte = 0xa7;
constexpr unsigned short two_bytes = 0xb3c4;
constexpr unsigned int word = 0xd5e6f708;

TEST_F(Fills, with_bytes) {
  fill_parts(byte, [](auto... rest) { return cuMemsetD8(rest...); });
  fill_parts(static_cast<unsigned char>(byte + 1),
             [&](auto... rest) { return cuMemsetD8Async(rest..., stream); });
}

TEST_F(Fills, with_two_bytes) {
  fill_parts(two_bytes, [](auto... rest) { return cuMemsetD16(rest...); });
  fill_parts(static_cast<unsigned short>(two_bytes + 1),
             [&](auto... rest) { return cuMemsetD16Async(rest..., stream); });
}

TEST_F(Fills, with_words) {
  fill_parts(word, [](auto... rest) { return cuMemsetD32(rest...); });
  fill_parts(word + 1, [&](auto... rest) { return cuMemsetD32Async(rest..., stream); });
}

TEST_F(Fills, rows_are_filled_with_bytes) {
  fill_rows(byte, [](auto... rest) { return cuMemsetD2D8(rest...); });
  fill_rows(static_cast<unsigned char>(byte + 1),
            [&](auto... rest) { return cuMemsetD2D8Async(rest..., stream); });
}

TEST_F(Fills, rows_are_filled_with_two_bytes) {
  fill_rows(two_bytes, [](auto... rest) { return cuMemsetD2D16(rest...); });
  fill_rows(static_cast<unsigned short>(two_bytes + 1),
            [&](auto... rest) { return cuMemsetD2D16Async(rest..., stream); });
}

TEST_F(Fills, rows_are_filled_with_words) {
  fill_rows(word, [](auto... rest) { return cuMemsetD2D32(rest...); });
  fill_rows(word + 1, [&](auto... rest) { return cuMemsetD2D32Async(rest..., stream); });
}

TEST_F(Fills, by_the_runtime) {
  const auto all = [](Piece& piece) { return reinterpret_cast<void*>(piece.start); };
  for (Piece& piece : pieces) {
    ASSERT_EQ(cudaMemset(all(piece), 0x11, piece.size()), cudaSuccess);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    const std::size_t first = (piece.size() + 1) / 2;
    ASSERT_EQ(cudaMemsetAsync(all(piece), 0x22, first, stream), cudaSuccess);
    piece.set(0, 0x11, piece.size());
    piece.set(0, 0x22, first);
    synchronise();
  }
  for (Piece* const piece : from_size(4 * kKiB)) {
    constexpr std::size_t pitch = 512, width = 333;
    const std::size_t rows = piece->size() / pitch;
    ASSERT_EQ(cudaMemset2D(all(*piece), pitch, 0x33, width, rows), cudaSuccess);
    // Fills two slices, each of which has a row that stays as it was.
    const std::size_t height = rows / 2;
    ASSERT_EQ(cudaMemset3DAsync(cudaPitchedPtr{all(*piece), pitch, width, height}, 0x44,
                                cudaExtent{width / 2, height - 1, 2}, nullptr),
              cudaSuccess);
    for (std::size_t y = 0; y < rows; ++y) piece->set(y * pitch, 0x33, width);
    for (std::size_t y = 0; y < 2 * height; ++y)
      if (y % height != height - 1) piece->set(y * pitch, 0x44, width / 2);
  }
}

TEST_F(Fills, the_last_of_several_fills_stays) {
  begin_long_work(stream);
  for (Piece& piece : pieces) {
    for (unsigned char value = 1; value <= 3; ++value)
      ASSERT_EQ(cuMemsetD8Async(piece.start, value, piece.size(), stream), CUDA_SUCCESS);
    piece.set(0, 3, piece.size());
  }
  synchronise();
}

}  // namespace
}  // namespace cuwarden::memory_contract
