// Shows the pool's behaviour over time:
//
//     pooled SITUATION [ipc|mpi]
//
// all: much is allocated in pieces and freed, then as much as possible in one request; idle: the
// same, and then small requests for 1.5 s; end: a static object frees a piece when the process
// ends; locked: half of what small requests took is freed in turn, then pieces are asked for. `ipc`
// makes an IPC handle first, `mpi` loads a library with MPI's name.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tests/end_to_end/programs/device_memory.hpp"
#include "tests/end_to_end/programs/let_time_pass.hpp"
#include "tests/end_to_end/programs/rescue/filling.hpp"

namespace {

using cuwarden::test::free_bytes;

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;

struct AtTheEnd {
  void* memory = nullptr;
  ~AtTheEnd() {
    if (memory != nullptr) std::printf("freed at the end: %d\n", cudaFree(memory));
  }
} at_the_end;

void* allocate(std::size_t bytes) {
  void* made = nullptr;
  return cudaMalloc(&made, bytes) == cudaSuccess ? made : nullptr;
}

std::size_t largest() {
  for (std::size_t bytes = free_bytes() / (2 * kMiB) * (2 * kMiB); bytes != 0; bytes -= 2 * kMiB)
    if (void* const made = allocate(bytes)) return cudaFree(made), bytes;
  return 0;
}

void use_and_free() {
  std::vector<void*> all;
  for (int i = 0; i < 200; ++i) all.push_back(allocate(3 * kMiB));
  for (void* const memory : all) cudaFree(memory);
}

void locked(const std::string& how) {
  if (how == "ipc") {
    cudaIpcMemHandle_t handle;
    cudaIpcGetMemHandle(&handle, allocate(8 * kMiB));
  }
  if (how == "mpi") dlopen(PRETENDED_MPI, RTLD_NOW);
  const std::size_t before = free_bytes();
  allocate(3 * kMiB);
  const std::size_t taken = before - free_bytes();
  std::vector<void*> small;
  for (int i = 0; i < 4000; ++i) small.push_back(allocate(64 * kKiB));
  for (std::size_t i = 0; i < small.size(); i += 2) cudaFree(small[i]);
  let_time_pass(300);
  cudaFree(small[1]);  // looks around
  int later = 0;
  for (; later < 100; ++later) allocate(3 * kMiB);
  std::printf("{\"early_taken\":%zu,\"later\":%d}\n", taken, later);
}

void locked_host() {
  void* made = nullptr;
  std::printf("first: %d\n", cudaMallocHost(&made, 60 * kMiB));
  std::printf("free: %d\n", cudaFreeHost(made));
  std::printf("larger: %d\n", cudaMallocHost(&made, 80 * kMiB));
}

void captured() {
  use_and_free();
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  const std::size_t most = (free_bytes() - 64 * kMiB) / (2 * kMiB) * (2 * kMiB);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
  void* made = nullptr;
  std::printf("in the capture: %d\n", cudaMalloc(&made, most));
  cudaGetLastError();
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream, &graph);
  if (made != nullptr) cudaFree(made);
  std::printf("after the capture: %d\n", cudaMalloc(&made, most));
}

std::size_t resident_bytes() {
  std::size_t size = 0, resident = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%zu %zu", &size, &resident) != 2) return 0;
  std::fclose(file);
  return resident * 4096;
}

void staging() {
  const std::size_t before = resident_bytes();
  std::vector<void*> all;
  for (int i = 0; i < 20; ++i) {
    void* made = nullptr;
    if (cudaMallocHost(&made, 50 * kMiB) == cudaSuccess) std::memset(made, 1, 50 * kMiB);
    all.push_back(made);
  }
  for (void* const memory : all) cudaFreeHost(memory);
  const std::size_t after = resident_bytes();
  std::printf("{\"rss_kept_bytes\":%zu}\n", after > before ? after - before : 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string situation = argv[1];
  cudaFree(nullptr);
  if (situation == "all") {
    const std::size_t before = largest();
    use_and_free();
    std::printf("{\"largest_before\":%zu,\"largest_after\":%zu}\n", before, largest());
  } else if (situation == "idle") {
    use_and_free();
    for (int i = 0; i < 30; ++i) {
      let_time_pass(50);
      cudaFree(allocate(64 * kMiB));
    }
  } else if (situation == "end") {
    at_the_end.memory = allocate(3 * kMiB);
    std::printf("allocated: %d\n", at_the_end.memory != nullptr);
  } else if (situation == "locked_host") {
    locked_host();
  } else if (situation == "captured") {
    captured();
  } else if (situation == "staging") {
    staging();
  } else if (situation == "locked") {
    locked(argc > 2 ? argv[2] : "");
  }
  return 0;
}
