// A matrix product by cuBLAS. One handle is destroyed, another is leaked, and so is a matrix.
#include <cublas_v2.h>

#include "tests/gpu/programs/device_work.cuh"

namespace memory {

constexpr int n = 896;  // A matrix has 3.1 MiB, which the driver would round to 4.
constexpr std::size_t bytes = std::size_t{n} * n * sizeof(float);

__global__ void small_integers(float* data, unsigned count, unsigned seed) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] = static_cast<float>(work::value(seed, i) % 8);
}

void multiply(cublasHandle_t handle, expected::Account& account) {
  void* memory[3] = {};
  for (void*& matrix : memory) {
    REQUIRE(cudaMalloc(&matrix, bytes));
    account.allocated("device", bytes);
  }
  float* const a = static_cast<float*>(memory[0]);
  float* const b = static_cast<float*>(memory[1]);
  float* const c = static_cast<float*>(memory[2]);
  small_integers<<<n * n / 256, 256>>>(a, n * n, 1);
  small_integers<<<n * n / 256, 256>>>(b, n * n, 2);
  REQUIRE(cudaGetLastError());
  const float one = 1;
  const float zero = 0;
  REQUIRE(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, n, b, n, &zero, c, n));
  std::vector<float> product(std::size_t{n} * n);
  REQUIRE(cudaMemcpy(product.data(), c, bytes, cudaMemcpyDeviceToHost));
  // Sums of products of small integers are exact in any order.
  bool exact = true;
  double sum = 0;
  for (const float value : product) sum += value;
  for (int column = 0; column < n; column += 341) {
    for (int row = 0; row < n; row += 17) {
      double wanted = 0;
      for (int k = 0; k < n; ++k)
        wanted += (work::value(1, std::size_t(k) * n + row) % 8) *
                  (work::value(2, std::size_t(column) * n + k) % 8);
      exact = exact && wanted == product[std::size_t(column) * n + row];
    }
  }
  std::printf("product: sum %.0f, as the host computes it: %s\n", sum, exact ? "yes" : "no");
  for (void* matrix : memory) {
    REQUIRE(cudaFree(matrix));
    account.freed("device", bytes);
  }
}

void planted_matrix(expected::Account& account) {
  void* matrix = nullptr;
  const int line = __LINE__ + 1;
  REQUIRE(cudaMalloc(&matrix, 5 * bytes));
  account.allocated("device", 5 * bytes);
  account.leaked({"cudaMalloc", "device", "planted_matrix", line, 1, 5 * bytes});
}

cublasHandle_t planted_handle() {
  cublasHandle_t handle = nullptr;
  REQUIRE(cublasCreate(&handle));
  return handle;
}

}  // namespace memory

int main() {
  const long long before = work::warm_up();
  expected::Account account;
  cublasHandle_t handle = nullptr;
  REQUIRE(cublasCreate(&handle));
  memory::multiply(handle, account);
  REQUIRE(cublasDestroy(handle));
  memory::multiply(memory::planted_handle(), account);
  memory::planted_matrix(account);
  REQUIRE(cudaDeviceSynchronize());
  const long long after = work::used_bytes();
  std::printf("memory: {\"taken_bytes\":%lld,\"used_bytes\":%lld}\n", after - before, after);
  account.print();
}
