// spilled_work LEAVE_MIB BYTES: fills the device but for LEAVE_MIB, allocates BYTES, and has kernels
// write and read all of it, by several streams, with copies between. Each line is the same wherever
// the memory lies; "memory: " lines have what was taken and the rates.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "tests/gpu/programs/device_work.cuh"

namespace spilled {

constexpr std::size_t MiB = std::size_t{1} << 20;

__device__ __host__ inline std::uint64_t value_at(std::uint64_t index) {
  std::uint64_t value = index * 0x9e3779b97f4a7c15u + 1;
  value ^= value >> 29;
  return value * 0xbf58476d1ce4e5b9u;
}

__global__ void write_all(std::uint64_t* data, std::size_t count) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    data[i] = value_at(i);
}

__global__ void count_wrong(const std::uint64_t* data, std::size_t count,
                            unsigned long long* wrong) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  unsigned long long mine = 0;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    mine += data[i] != value_at(i) ? 1 : 0;
  if (mine != 0) atomicAdd(wrong, mine);
}

std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  REQUIRE(cudaMemGetInfo(&free, &total));
  return free;
}

unsigned long long wrong_in(const std::uint64_t* data, std::size_t count) {
  unsigned long long* wrong = nullptr;
  REQUIRE(cudaMallocHost(&wrong, sizeof *wrong));
  *wrong = 0;
  count_wrong<<<1024, 256>>>(data, count, wrong);
  REQUIRE(cudaDeviceSynchronize());
  const unsigned long long found = *wrong;
  REQUIRE(cudaFreeHost(wrong));
  return found;
}

template <typename Work>
double gigabytes_per_second(std::size_t bytes, Work work) {
  const auto begun = std::chrono::steady_clock::now();
  work();
  REQUIRE(cudaDeviceSynchronize());
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun;
  return static_cast<double>(bytes) / 1e9 / taken.count();
}

}  // namespace spilled

int main(int argc, char** argv) {
  using namespace spilled;
  if (argc != 3) return 2;
  const std::size_t leave = std::strtoull(argv[1], nullptr, 0) * MiB,
                    bytes = std::strtoull(argv[2], nullptr, 0), count = bytes / 8;
  work::warm_up();
  for (std::size_t block = 1024 * MiB; block >= 2 * MiB; block /= 2) {
    void* more = nullptr;
    while (leave != 0 && free_bytes() >= block + leave && cudaMalloc(&more, block) == cudaSuccess) {
    }
    cudaGetLastError();
  }
  const std::size_t before = free_bytes();
  std::uint64_t* data = nullptr;
  const cudaError_t result = cudaMalloc(&data, bytes);
  std::printf("cudaMalloc: %d\n", static_cast<int>(result));
  if (result != cudaSuccess) return 1;
  const std::size_t taken = before - free_bytes();
  const double written = gigabytes_per_second(bytes, [&] { write_all<<<1024, 256>>>(data, count); });
  std::printf("wrong after a kernel: %llu\n", wrong_in(data, count));
  // Back and forth through the host, with another stream's kernel behind each copy.
  std::vector<std::uint64_t> host(count);
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  REQUIRE(cudaMemcpy(host.data(), data, bytes, cudaMemcpyDeviceToHost));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += host[i] != value_at(i) ? 1 : 0;
  std::printf("wrong on the host: %zu\n", wrong);
  REQUIRE(cudaMemsetAsync(data, 0, bytes, stream));
  REQUIRE(cudaMemcpyAsync(data, host.data(), bytes, cudaMemcpyHostToDevice, stream));
  REQUIRE(cudaStreamSynchronize(stream));
  std::printf("wrong after copies: %llu\n", wrong_in(data, count));
  // A free waits for the kernel that is still at work on it.
  write_all<<<64, 64, 0, stream>>>(data, count);
  REQUIRE(cudaGetLastError());
  std::printf("cudaFree: %d\n", static_cast<int>(cudaFree(data)));
  std::printf("afterwards: %d\n", static_cast<int>(cudaDeviceSynchronize()));
  std::printf("memory: {\"bytes\":%zu,\"taken\":%zu,\"given_back\":%d,\"write_gb_s\":%.1f}\n", bytes,
              taken, free_bytes() == before, written);
  return 0;
}
