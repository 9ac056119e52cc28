// An all-reduce over all devices of this process. Buffers on each device are leaked, and so is a
// second set of communicators.
#include <nccl.h>

#include "tests/gpu/programs/device_work.cuh"

namespace memory {

constexpr std::size_t count = std::size_t{3} << 18;  // 3 MiB, which the driver would round to 4.
constexpr std::size_t bytes = count * sizeof(float);

__global__ void ranks(float* data, float rank) {
  const std::size_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] = rank + static_cast<float>(i % 1000);
}

void all_reduce(std::vector<ncclComm_t>& communicators, expected::Account& account) {
  const int devices = static_cast<int>(communicators.size());
  std::vector<void*> buffers(communicators.size());
  for (int device = 0; device < devices; ++device) {
    REQUIRE(cudaSetDevice(device));
    REQUIRE(cudaMalloc(&buffers[device], bytes));
    account.allocated("device", bytes);
    ranks<<<count / 256, 256>>>(static_cast<float*>(buffers[device]), static_cast<float>(device));
    REQUIRE(cudaGetLastError());
  }
  REQUIRE(ncclGroupStart());
  for (int device = 0; device < devices; ++device)
    REQUIRE(ncclAllReduce(buffers[device], buffers[device], count, ncclFloat, ncclSum,
                          communicators[device], nullptr));
  REQUIRE(ncclGroupEnd());
  bool right = true;
  for (int device = 0; device < devices; ++device) {
    REQUIRE(cudaSetDevice(device));
    REQUIRE(cudaDeviceSynchronize());
    std::vector<float> got(count);
    REQUIRE(cudaMemcpy(got.data(), buffers[device], bytes, cudaMemcpyDeviceToHost));
    for (std::size_t i = 0; i < count; ++i)
      right = right && got[i] == static_cast<float>(devices * (devices - 1) / 2 +
                                                    devices * static_cast<int>(i % 1000));
    REQUIRE(cudaFree(buffers[device]));
    account.freed("device", bytes);
  }
  std::printf("sum over %d devices, as the host computes it: %s\n", devices, right ? "yes" : "no");
}

std::vector<ncclComm_t> planted_communicators(int devices) {
  std::vector<ncclComm_t> communicators(static_cast<std::size_t>(devices));
  REQUIRE(ncclCommInitAll(communicators.data(), devices, nullptr));
  return communicators;
}

void planted_buffers(int devices, expected::Account& account) {
  int line = 0;
  for (int device = 0; device < devices; ++device) {
    REQUIRE(cudaSetDevice(device));
    void* buffer = nullptr;
    line = __LINE__ + 1;
    REQUIRE(cudaMalloc(&buffer, 3 * bytes));
    account.allocated("device", 3 * bytes);
  }
  const auto number = static_cast<std::size_t>(devices);
  account.leaked({"cudaMalloc", "device", "planted_buffers", line, number, number * 3 * bytes});
}

}  // namespace memory

int main() {
  int devices = 0;
  REQUIRE(cudaGetDeviceCount(&devices));
  long long before = 0;
  for (int device = 0; device < devices; ++device) {
    REQUIRE(cudaSetDevice(device));
    before += work::warm_up();
  }
  expected::Account account;
  {
    std::vector<ncclComm_t> communicators(static_cast<std::size_t>(devices));
    REQUIRE(ncclCommInitAll(communicators.data(), devices, nullptr));
    memory::all_reduce(communicators, account);
    for (ncclComm_t communicator : communicators) REQUIRE(ncclCommDestroy(communicator));
  }
  std::vector<ncclComm_t> communicators = memory::planted_communicators(devices);
  memory::all_reduce(communicators, account);
  memory::planted_buffers(devices, account);
  long long after = 0;
  for (int device = 0; device < devices; ++device) {
    REQUIRE(cudaSetDevice(device));
    REQUIRE(cudaDeviceSynchronize());
    after += work::used_bytes();
  }
  std::printf("memory: {\"taken_bytes\":%lld,\"used_bytes\":%lld,\"devices\":%d}\n", after - before,
              after, devices);
  account.print();
}
