// spilled_work LEAVE_MIB BYTES: fills the device except LEAVE_MIB, and allocates BYTES. Kernels
// write and read all of it, in several streams, with copies between them. Each line is the same
// wherever the memory lies; "memory: " lines have the bytes taken and the rates.
#include <cstdlib>
#include <vector>

#include "tests/gpu/programs/wide_work.cuh"

namespace spilled {

constexpr std::size_t MiB = std::size_t{1} << 20;

using cuwarden::test::free_bytes;

}  // namespace spilled

int main(int argc, char** argv) {
  using namespace spilled;
  using namespace wide;
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
  const double written =
      gigabytes_per_second(bytes, [&] { write_all<<<1024, 256>>>(data, count, 0); });
  std::printf("wrong after a kernel: %llu\n", wrong_in(data, count));
  // The bytes go back and forth through the host, with another stream's kernel behind each copy.
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
  // The free waits for the kernel that still works on the memory.
  write_all<<<64, 64, 0, stream>>>(data, count, 0);
  REQUIRE(cudaGetLastError());
  std::printf("cudaFree: %d\n", static_cast<int>(cudaFree(data)));
  std::printf("afterwards: %d\n", static_cast<int>(cudaDeviceSynchronize()));
  std::printf("memory: {\"bytes\":%zu,\"taken\":%zu,\"given_back\":%d,\"write_gb_s\":%.1f}\n",
              bytes, taken, free_bytes() == before, written);
  return 0;
}
