// Handles for other processes (CUDA IPC), on a device that is full: to open them is never refused
// for lack of memory. Rescues rely on this. The parent does not use the driver before it has made
// its child: a forked process cannot use its parent's driver state.
#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>

#include "tests/contract/numbered_facts.hpp"

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t block_bytes = 2 * mib, most_left = 16 * mib;
constexpr unsigned count = 200;

using Handles = std::array<CUipcMemHandle, count>;

bool start() {
  CUcontext context = nullptr;
  return cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
         cuCtxSetCurrent(context) == CUDA_SUCCESS;
}

std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  require(cuMemGetInfo(&free, &total) == CUDA_SUCCESS, 20);
  return free;
}

// Blocks of 1 MiB leave no half page behind.
void fill_device() {
  CUdeviceptr block = 0;
  for (std::size_t bytes = 16384 * mib; bytes >= mib; bytes /= 2)
    while (cuMemAlloc(&block, bytes) == CUDA_SUCCESS) continue;
}

// Opens all handles on the full device, and reads the number of each block. Then closes them.
void open_all(const Handles& handles) {
  std::array<CUdeviceptr, count> opened{};
  for (unsigned i = 0; i < count; ++i) {
    const CUresult answer =
        cuIpcOpenMemHandle(&opened[i], handles[i], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    if (answer != CUDA_SUCCESS)
      std::fprintf(stderr, "handle %u: error %d, %zu bytes are free\n", i, static_cast<int>(answer),
                   free_bytes());
    require(answer == CUDA_SUCCESS, 21);
    unsigned number = count;
    require(cuMemcpyDtoH(&number, opened[i], sizeof number) == CUDA_SUCCESS, 22);
    require(number == i, 23);
  }
  for (const CUdeviceptr address : opened)
    require(cuIpcCloseMemHandle(address) == CUDA_SUCCESS, 24);
}

// Reads from the pipe until all handles are there.
void read_all(int from, Handles& handles) {
  auto* const bytes = reinterpret_cast<char*>(handles.data());
  for (std::size_t got = 0; got < sizeof handles;) {
    const ssize_t more = read(from, bytes + got, sizeof handles - got);
    require(more > 0, 25);
    got += static_cast<std::size_t>(more);
  }
}

[[noreturn]] void be_child(int from_parent) {
  Handles handles{};
  read_all(from_parent, handles);
  require(start(), 26);
  fill_device();
  require(free_bytes() < most_left, 27);
  for (int times = 0; times < 2; ++times) open_all(handles);
  _exit(0);
}

}  // namespace

int main() {
  int pipe_ends[2];
  require(pipe(pipe_ends) == 0, 1);
  const pid_t other = fork();
  if (other == 0) {
    close(pipe_ends[1]);
    be_child(pipe_ends[0]);
  }
  close(pipe_ends[0]);
  if (!start()) return 77;
  Handles handles{};
  for (unsigned i = 0; i < count; ++i) {
    CUdeviceptr block = 0;
    require(cuMemAlloc(&block, block_bytes) == CUDA_SUCCESS, 2);
    require(cuMemcpyHtoD(block, &i, sizeof i) == CUDA_SUCCESS, 3);
    require(cuIpcGetMemHandle(&handles[i], block) == CUDA_SUCCESS, 4);
  }
  require(write(pipe_ends[1], handles.data(), sizeof handles) == ssize_t{sizeof handles}, 5);
  int status = 0;
  require(waitpid(other, &status, 0) == other, 6);
  if (status != 0)
    std::fprintf(stderr, "the other process ended with status %d\n", WEXITSTATUS(status));
  return status == 0 ? 0 : 7;
}
