// Arrays and mipmapped arrays, by both layers. Sizes are powers of two, so that bytes are exact.
#include "tests/end_to_end/programs/allocation_calls/calls.hpp"

namespace allocation_calls {

namespace {

CUDA_ARRAY_DESCRIPTOR flat(std::size_t width, std::size_t height) {
  CUDA_ARRAY_DESCRIPTOR descriptor{};
  descriptor.Width = width;
  descriptor.Height = height;
  descriptor.Format = CU_AD_FORMAT_FLOAT;
  descriptor.NumChannels = 1;
  return descriptor;
}

CUDA_ARRAY3D_DESCRIPTOR solid(std::size_t width, std::size_t height, std::size_t depth) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  descriptor.Width = width;
  descriptor.Height = height;
  descriptor.Depth = depth;
  descriptor.Format = CU_AD_FORMAT_FLOAT;
  descriptor.NumChannels = 2;
  return descriptor;
}

}  // namespace

void arrays(Account& account) {
  const cudaChannelFormatDesc channel{32, 0, 0, 0, cudaChannelFormatKindFloat};

  cudaArray_t one = nullptr;
  int line = __LINE__ + 1;
  REQUIRE(cudaMallocArray(&one, &channel, 256, 256));
  account.allocated("array", std::size_t{256} * 256 * 4);
  account.leaked({"cudaMallocArray", "array", "arrays", line, 1, std::size_t{256} * 256 * 4});

  cudaArray_t two = nullptr;
  line = __LINE__ + 1;
  REQUIRE(cudaMalloc3DArray(&two, &channel, cudaExtent{128, 64, 32}));
  account.allocated("array", std::size_t{128} * 64 * 32 * 4);
  account.leaked({"cudaMalloc3DArray", "array", "arrays", line, 1, std::size_t{128} * 64 * 32 * 4});

  cudaMipmappedArray_t three = nullptr;
  constexpr std::size_t levels = (std::size_t{64} * 64 + 32 * 32 + 16 * 16) * 4;
  line = __LINE__ + 1;
  REQUIRE(cudaMallocMipmappedArray(&three, &channel, cudaExtent{64, 64, 0}, 3));
  account.allocated("array", levels);
  account.leaked({"cudaMallocMipmappedArray", "array", "arrays", line, 1, levels});

  CUarray four = nullptr;
  const CUDA_ARRAY_DESCRIPTOR plane = flat(512, 128);
  line = __LINE__ + 1;
  REQUIRE(cuArrayCreate(&four, &plane));
  account.allocated("array", std::size_t{512} * 128 * 4);
  account.leaked({"cuArrayCreate_v2", "array", "arrays", line, 1, std::size_t{512} * 128 * 4});

  CUarray five = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR volume = solid(64, 64, 16);
  line = __LINE__ + 1;
  REQUIRE(cuArray3DCreate(&five, &volume));
  account.allocated("array", std::size_t{64} * 64 * 16 * 8);
  account.leaked({"cuArray3DCreate_v2", "array", "arrays", line, 1, std::size_t{64} * 64 * 16 * 8});

  CUmipmappedArray six = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR base = solid(32, 32, 0);
  REQUIRE(cuMipmappedArrayCreate(&six, &base, 1));
  account.allocated("array", std::size_t{32} * 32 * 8);

  cudaArray_t seven = nullptr;
  REQUIRE(cudaMallocArray(&seven, &channel, 1024, 0));  // one dimension
  account.allocated("array", std::size_t{1024} * 4);

  REQUIRE(cuMipmappedArrayDestroy(six));
  account.freed("array", std::size_t{32} * 32 * 8);
  REQUIRE(cudaFreeArray(seven));
  account.freed("array", std::size_t{1024} * 4);

  CUarray eight = nullptr;
  REQUIRE(cuArrayCreate(&eight, &plane));
  account.allocated("array", std::size_t{512} * 128 * 4);
  REQUIRE(cuArrayDestroy(eight));
  account.freed("array", std::size_t{512} * 128 * 4);
}

}  // namespace allocation_calls
