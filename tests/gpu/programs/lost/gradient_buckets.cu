// NCCL: gradients are summed in buckets, as data-parallel training does. When a bucket's size
// changes, a new buffer replaces the old one, and the old one is forgotten.
#include <nccl.h>

#include <map>
#include <vector>

#include "tests/end_to_end/programs/require.hpp"

namespace {

struct Bucket {
  float* data = nullptr;
  std::size_t count = 0;
};

// The buckets of the model's layers. They live until the end.
std::map<int, Bucket>& buckets() {
  static std::map<int, Bucket> made;
  return made;
}

Bucket& bucket(int layer, std::size_t count) {
  Bucket& made = buckets()[layer];
  if (made.count == count) return made;
  REQUIRE(cudaMalloc(&made.data, count * sizeof(float)));  // planted
  made.count = count;
  return made;
}

}  // namespace

int main() {
  constexpr int layers = 24, steps = 40;
  ncclComm_t communicator = nullptr;
  int device = 0;
  REQUIRE(ncclCommInitAll(&communicator, 1, &device));
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreate(&stream));
  static std::vector<float*> activations(layers);
  for (float*& activation : activations) REQUIRE(cudaMalloc(&activation, 8 << 20));
  for (int step = 0; step < steps; ++step) {
    for (int layer = 0; layer < layers; ++layer) {
      const std::size_t count = (layer == 7 && step % 3 == 0 ? 1u << 18 : 1u << 20);
      Bucket& gradients = bucket(layer, count);
      REQUIRE(ncclAllReduce(gradients.data, gradients.data, count, ncclFloat, ncclSum, communicator,
                            stream));
    }
    REQUIRE(cudaStreamSynchronize(stream));
  }
  std::printf("%zu buckets\n", buckets().size());
}
