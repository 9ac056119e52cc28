// Shares memory of cudaMalloc with another process:
//
//     shared_pointer BYTES
//
// The other process is a second run of this program. It reads bytes that this process has written,
// and writes bytes that this process reads. The last line is JSON with the driver's answer to
// cuIpcGetMemHandle for mapped virtual memory.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/end_to_end/programs/require.hpp"

namespace {

constexpr unsigned char kSent = 0x5a, kAnswer = 0xa5;

bool holds(const void* memory, std::size_t bytes, unsigned char value) {
  std::vector<unsigned char> got(bytes);
  REQUIRE(cudaMemcpy(got.data(), memory, bytes, cudaMemcpyDeviceToHost));
  for (const unsigned char byte : got)
    if (byte != value) return false;
  return true;
}

std::string text_of(const cudaIpcMemHandle_t& handle) {
  std::string text;
  for (const char byte : handle.reserved) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
    text += digits;
  }
  return text;
}

int open_it(const std::string& text, std::size_t bytes) {
  cudaIpcMemHandle_t handle{};
  if (text.size() != 2 * sizeof handle.reserved) return 2;
  for (std::size_t i = 0; i < sizeof handle.reserved; ++i)
    handle.reserved[i] = static_cast<char>(std::stoul(text.substr(2 * i, 2), nullptr, 16));
  void* memory = nullptr;
  REQUIRE(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess));
  if (!holds(memory, bytes, kSent)) return 4;
  REQUIRE(cudaMemset(memory, kAnswer, bytes));
  REQUIRE(cudaDeviceSynchronize());
  REQUIRE(cudaIpcCloseMemHandle(memory));
  return 0;
}

int answer_of_another(const std::string& handle, const char* bytes) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "shared_pointer", bytes, handle.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

// Returns the driver's answer for memory that cannot be shared by IPC.
int answer_for_mapped_memory() {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  constexpr std::size_t page = std::size_t{2} << 20;
  CUmemGenericAllocationHandle memory{};
  CUdeviceptr range = 0;
  REQUIRE(cuMemCreate(&memory, page, &prop, 0));
  REQUIRE(cuMemAddressReserve(&range, page, 0, 0, 0));
  REQUIRE(cuMemMap(range, page, 0, memory, 0));
  CUipcMemHandle handle;
  const CUresult result = cuIpcGetMemHandle(&handle, range);
  REQUIRE(cuMemUnmap(range, page));
  REQUIRE(cuMemAddressFree(range, page));
  REQUIRE(cuMemRelease(memory));
  return static_cast<int>(result);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return 2;
  const std::size_t bytes = std::strtoull(argv[1], nullptr, 0);
  if (argc == 3) return open_it(argv[2], bytes);

  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, bytes));
  REQUIRE(cudaMemset(memory, kSent, bytes));
  REQUIRE(cudaDeviceSynchronize());
  for (int attempt = 0; attempt < 2; ++attempt) {
    cudaIpcMemHandle_t handle{};
    const cudaError_t result = cudaIpcGetMemHandle(&handle, memory);
    std::printf("handle: %d, left behind: %d\n", static_cast<int>(result),
                static_cast<int>(cudaGetLastError()));
    if (result != cudaSuccess || attempt != 0) continue;
    std::printf("the other process: %d\n", answer_of_another(text_of(handle), argv[1]));
    std::printf("its answer is here: %d\n", holds(memory, bytes, kAnswer));
  }
  std::printf("cudaFree: %d\n", static_cast<int>(cudaFree(memory)));
  std::printf("{\"bytes\":%zu,\"refusal\":%d}\n", bytes, answer_for_mapped_memory());
  return 0;
}
