// Transforms by cuFFT. One plan is destroyed, another is leaked with its work area, and so are the
// data.
#include <cufft.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/gpu/programs/device_work.cuh"

namespace memory {

constexpr int length = 1 << 16;
constexpr int batch = 33;  // 16.5 MiB in all, which the driver would round to 18.
constexpr std::size_t bytes = std::size_t{length} * batch * sizeof(cufftComplex);

// Sets element 1 of each row to one, the others to 0. The transform of a row is exp(-2 pi i k /
// length).
__global__ void impulses(cufftComplex* data) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  data[i] = make_float2(i % length == 1 ? 1.0f : 0.0f, 0.0f);
}

void transform(cufftHandle plan, expected::Account& account) {
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, bytes));
  account.allocated("device", bytes);
  auto* data = static_cast<cufftComplex*>(memory);
  impulses<<<length * batch / 256, 256>>>(data);
  REQUIRE(cudaGetLastError());
  REQUIRE(cufftExecC2C(plan, data, data, CUFFT_FORWARD));
  std::vector<cufftComplex> got(std::size_t{length} * batch);
  REQUIRE(cudaMemcpy(got.data(), data, bytes, cudaMemcpyDeviceToHost));
  unsigned sum = 2166136261u;
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double angle = -2 * M_PI * static_cast<double>(i % length) / length;
    worst = std::max(
        {worst, std::abs(got[i].x - std::cos(angle)), std::abs(got[i].y - std::sin(angle))});
    unsigned word = 0;
    std::memcpy(&word, &got[i].x, sizeof word);
    sum = (sum ^ word) * 16777619u;
  }
  std::printf("transform: %08x, as the host computes it: %s\n", sum, worst < 1e-4 ? "yes" : "no");
  REQUIRE(cudaFree(memory));
  account.freed("device", bytes);
}

cufftHandle planted_plan() {
  cufftHandle plan{};
  REQUIRE(cufftPlan1d(&plan, length, CUFFT_C2C, batch));
  return plan;
}

void planted_data(expected::Account& account) {
  void* data = nullptr;
  const int line = __LINE__ + 1;
  REQUIRE(cudaMalloc(&data, 54321));
  account.allocated("device", 54321);
  account.leaked({"cudaMalloc", "device", "planted_data", line, 1, 54321});
}

}  // namespace memory

int main() {
  const long long before = work::warm_up();
  expected::Account account;
  cufftHandle plan{};
  REQUIRE(cufftPlan1d(&plan, memory::length, CUFFT_C2C, memory::batch));
  memory::transform(plan, account);
  REQUIRE(cufftDestroy(plan));
  plan = memory::planted_plan();
  memory::transform(plan, account);
  std::size_t work_area = 0;
  REQUIRE(cufftGetSize(plan, &work_area));
  std::printf("work area: %zu\n", work_area);
  memory::planted_data(account);
  REQUIRE(cudaDeviceSynchronize());
  const long long after = work::used_bytes();
  std::printf("memory: {\"taken_bytes\":%lld,\"used_bytes\":%lld,\"work_area_bytes\":%zu}\n",
              after - before, after, work_area);
  account.print();
}
