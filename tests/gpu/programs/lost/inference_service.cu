// A service: four workers answer requests with cuBLAS, each with a workspace of its own, and
// weights that all share. A request that is cancelled keeps its result's buffer.
#include <cublas_v2.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tests/end_to_end/programs/require.hpp"

namespace {

constexpr int size = 512;

class Weights {
 public:
  float* of(int model) {
    const std::lock_guard<std::mutex> locked(lock_);
    float*& weights = by_model_[model];
    if (weights == nullptr) {
      REQUIRE(cudaMalloc(&weights, 8 * size * size * sizeof(float)));
      REQUIRE(cudaMemset(weights, 0, 8 * size * size * sizeof(float)));
    }
    return weights;
  }

 private:
  std::mutex lock_;
  std::unordered_map<int, float*> by_model_;
};

Weights weights;
std::atomic<int> cancelled{0};

struct Worker {
  cublasHandle_t handle = nullptr;
  cudaStream_t stream = nullptr;
  float* workspace = nullptr;

  Worker() {
    REQUIRE(cudaStreamCreate(&stream));
    REQUIRE(cublasCreate(&handle));
    REQUIRE(cublasSetStream(handle, stream));
    REQUIRE(cudaMallocAsync(&workspace, 16 << 20, stream));
  }
  ~Worker() {
    REQUIRE(cudaFreeAsync(workspace, stream));
    REQUIRE(cublasDestroy(handle));
    REQUIRE(cudaStreamDestroy(stream));
  }
};

void answer(Worker& worker, int request) {
  float* result = nullptr;
  REQUIRE(cudaMalloc(&result, size * size * sizeof(float)));  // planted
  const float one = 1, zero = 0;
  const float* const model = weights.of(request % 8);
  REQUIRE(cublasSgemm(worker.handle, CUBLAS_OP_N, CUBLAS_OP_N, size, size, size, &one, model, size,
                      model + size * size, size, &zero, result, size));
  REQUIRE(cudaStreamSynchronize(worker.stream));
  if (request % 37 == 5) {
    ++cancelled;
    return;
  }
  REQUIRE(cudaFree(result));
}

}  // namespace

int main() {
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number)
    threads.emplace_back([number] {
      Worker worker;
      for (int request = number; request < 1200; request += 4) answer(worker, request);
    });
  for (std::thread& thread : threads) thread.join();
  std::printf("%d requests were cancelled\n", cancelled.load());
}
